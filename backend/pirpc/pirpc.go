// Package pirpc reads and writes the RPC of the pi coding agent and keeps what a session is by it: its rows, its state,
// what it asks, what it was told. It does no I/O and looks at no clock: bytes and times are handed in.
//
// Pi names no version on the wire, so nothing here asks for one. Records of all its generations, of its forks, and of the
// form that other tools' schemas draft, are told apart by their shape and read as one stream of changes. What is not
// known is kept and shown, and never an error.
//
//   - frame.go: bytes to records; fields.go, content.go: one record's members, whatever they are called
//   - command.go: what is written, checked before it is; pending.go: who waits for which answer
//   - session.go: the state; events.go, stream.go: what each event does to it; ask.go: dialogs; row.go: the transcript
package pirpc
