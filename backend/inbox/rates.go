package inbox

import "time"

// Rate is what one agent sent the person since a moment, and what became of it. Messages to other agents are not in it.
type Rate struct {
	Asks, Tasks, Notices int // as they came in
	// Of the asks and tasks among them: decided by the person or a rule, expired, taken back, and still open.
	Answered, Expired, Withdrawn, Open int
	// Median is the time from arrival to the answer of those answered; 0: there was none.
	Median time.Duration
}

// Add counts one item.
func (r *Rate) Add(k Kind, s State) {
	switch k {
	case Task:
		r.Tasks++
	case Notice:
		r.Notices++
		return
	default:
		r.Asks++
	}
	switch {
	case s == Expired:
		r.Expired++
	case s == Cancelled:
		r.Withdrawn++
	case s == Open:
		r.Open++
	case s.ByPerson():
		r.Answered++
	}
}

// ByPerson says that an item ended so by somebody who may decide it, and neither by the clock nor by its agent.
func (s State) ByPerson() bool {
	return s == Answered || s == Declined || s == Completed || s == Dismissed
}
