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
//     agent's webhook is told of directives besides, by the same queue as pushes, which stamps one delivered when the
//     webhook took it, and acknowledges none;
//   - it comes again until mailbox.Ack ends it, its session ends (it bounces), or its own time does (it expires): the
//     clock (mailbox.Run) applies all of that in the order it fell due, with the ends of sessions and items.
//
// What each package is for, and why things are as they are, is in docs/architecture.md.
package backend
