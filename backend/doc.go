// Package backend is the hub: it works without a window, and everything in it can be tested in process.
//
// The life of an item, from socket to callback:
//
//   - server decides who is asking (host, origin, credential) and reads the body within its bound;
//   - protocol/ma2h checks the message, strictly, and maps it to an inbox.Item beside the original bytes;
//   - inbox.Submit stores it in one transaction; a repeated idempotency key finds the first item instead;
//   - after the commit, and only then, the feeds say that something moved: desk tells the page, Attention the desktop;
//   - the person decides: inbox.Decide, or Resolve, applies the one lifecycle in one transaction that writes the item,
//     its history line, the reply as its protocol sends it, and the push it owes;
//   - an item whose agent holds its own request open is waited for by that request (inbox.Await) and left with it
//     (inbox.Leave): nobody answers a request that is gone;
//   - waiting pulls wake; delivery sends the push, signed afresh in every attempt, until it is received or given up.
//
// The packages:
//
//   - inbox: items, their lifecycle, who may decide them, and the use cases; no I/O
//   - fleet: agents, credentials, policy, pairing, sessions, presence
//   - gate: the operator's rules about what agents may do, and how each call that asked leave was judged; no I/O
//   - pirpc: the RPC of pi, read and written; piproc: one pi as a process; transcript: what sessions said and did, kept
//   - guardian: guarded sessions, the chain of their steps, and the check of a chain; no I/O
//   - mailbox: what agents collect, and the clock that ends whatever falls due, in order
//   - client: an agent's side of the protocol
//   - protocol: the contract of a binding and the one table of errors; protocol/ma2h, acs, pi: the dialects
//   - server: listening, the ladder of checks, one way to write answers and errors
//   - desk: what the inbox page calls, and the operator's part of /v1
//   - delivery: the durable queue of pushes and the guarded client
//   - signing, wire, render: canonical JSON and signatures, strict JSON, safe text; no I/O
//   - secrets, settings, config: what must be known in clear, what can be set, what the hub is started with
//   - notify: when to disturb the person
//   - cli: the commands
package backend
