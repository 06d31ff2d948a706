// Package backend is the hub: it works without a window, and everything in it can be tested in process.
//
// The life of an item, from socket to callback:
//
//   - server decides who is asking (host, origin, credential) and reads the body within its bound;
//   - protocol/ma2h checks the message, strictly, and maps it to an inbox.Item beside the original bytes;
//   - mailbox.Submit stores it in one transaction, with its entry if it is for another agent (inbox.Submit is the way of
//     protocols without a mailbox); a repeated idempotency key finds the first item instead;
//   - after the commit, and only then, the feeds say that something moved: desk tells the page, Attention the desktop;
//   - the person decides: inbox.Decide, or Resolve, applies the one lifecycle in one transaction that writes the item,
//     its history line, the reply as its protocol sends it, and the push it owes;
//   - an item whose agent holds its own request open is waited for by that request (inbox.Await) and left with it
//     (inbox.Leave): nobody answers a request that is gone;
//   - waiting pulls wake; delivery sends the push, signed afresh in every attempt, until it is received or given up.
//
// The life of an entry, what an agent's mailbox holds: a directive of the person, a message of another agent, the answer
// to what the agent asked in a session, the receipt of a bounce:
//
//   - mailbox.Author or Submit enqueues it with what it carries; an answer is enqueued by the commit that ends its item,
//     a receipt by the one that bounces its message;
//   - a drain, or a stream, claims it: signed at that moment, out of sight for a while; a drain stamps it delivered. An
//     agent's webhook is told of directives besides, by the same queue as pushes, which changes nothing in the mailbox;
//   - it comes again until mailbox.Ack ends it, its session ends (it bounces), or its own time does (it expires): the
//     clock (mailbox.Run) applies all of that in the order it fell due, with the ends of sessions and items.
//
// The packages:
//
//   - inbox: items, their lifecycle, who may decide them, and the use cases; no I/O
//   - fleet: agents, credentials, policy, pairing, sessions, presence
//   - gate: the operator's rules about what agents may do, and how each call that asked leave was judged; no I/O
//   - pirpc: the RPC of pi, read and written; piproc: one pi as a process; transcript: what sessions said and did, kept
//   - guardian: guarded sessions, the chain of their steps, and the check of a chain; no I/O
//   - crew: the agents that principals run, what they hand each other, and the queue it waits in; no I/O
//   - supervise: commands that end whole, however the hub ends
//   - mapnet: the network of MAP agents, with the person as one of the participants; no I/O
//   - workspace: folders that the operator granted, as agents of the network read them
//   - mailbox: what agents collect, and the clock that ends whatever falls due, in order
//   - client: an agent's side of the protocol
//   - protocol: the contract of a binding and the one table of errors; protocol/ma2h, acs, acp, pi, mapv1: the dialects
//   - server: listening, the ladder of checks, one way to write answers and errors
//   - desk: what the inbox page calls, and the operator's part of /v1
//   - socket: WebSockets with bounds, whatever is spoken on them
//   - delivery: the durable queue of pushes and the guarded client
//   - signing, wire, render, brief, patch, loopback: canonical JSON and signatures, strict JSON, safe text, short text,
//     patches of files, what is this machine; no I/O
//   - secrets, settings, config: what must be known in clear, what can be set, what the hub is started with
//   - notify: when to disturb the person
//   - cli: the commands
//   - store (beside this package): SQLite, one writer, many readers; schemas: the JSON Schemas, compiled once
package backend
