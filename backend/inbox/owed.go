package inbox

import "time"

// Owed is one reply that must be pushed to its submitter, from the commit that made it until it is delivered or
// given up. It is a track of its own: whatever becomes of it, the decision stands and can be pulled.
type Owed struct {
	ID       int64
	ItemID   string // whose reply it is; empty for a directive
	EntryKey string // which directive it is; empty for a reply
	Protocol string
	Agent    string
	URL      string // exactly as the submitter wrote it
	Host     string // host or host:port: what the operator approves
	State    OwedState
	Attempts int // made so far
	Created  time.Time
	NextAt   time.Time // when the next attempt is due; only while Pending
	Round    int       // grows when somebody decides about it while an attempt may be under way
}

// OwedState is where a push stands.
type OwedState string

// The states of a push.
const (
	OwedPending  OwedState = "pending"
	OwedApproval OwedState = "waiting_approval" // the operator has not approved the host yet: nothing is sent
	OwedDone     OwedState = "delivered"        // the receiver answered 2xx
	OwedRefused  OwedState = "refused"          // the receiver answered 3xx or 4xx: never retried
	OwedGaveUp   OwedState = "gave_up"          // attempts are used up; the answer can still be pulled
	OwedMoot     OwedState = "collected"        // the submitter got it another way, and it is not sent any more
)

// Standing is where the push of an answer stands for the person, given how far the answer itself got: what the submitter has
// is undelivered no more, whatever became of the push.
func (o Owed) Standing(track TrackState) OwedState {
	if (o.State == OwedGaveUp || o.State == OwedRefused) && (track == TrackDelivered || track == TrackAcknowledged) {
		return OwedMoot
	}
	return o.State
}

// Attempt is one try at pushing.
type Attempt struct {
	N       int
	At      time.Time
	Took    time.Duration
	Status  int    // the HTTP status; 0 when there was none
	Err     string // why there was none
	Snippet string // the first bytes of the receiver's answer, untrusted
}

// Replier turns a decision into what its protocol sends back. It is pure: it reads the item, now ended, and nothing else.
type Replier interface {
	// Reply returns the response, and the ways it has to go besides being pulled.
	Reply(it Item) (Reply, error)
}

// Reply is what goes back to a submitter.
type Reply struct {
	Body []byte
	Push *Owed // nil: not pushed
	Hand *Hand // nil: not put into its mailbox
}

// Hand is a reply on its way into the submitter's mailbox: to the session that asked, if it is live when the item ends.
type Hand struct {
	Session string
	To      string    // the address it is signed for
	Until   time.Time // how long it is kept there
}
