package app

import "time"

// A page whose process dies is loaded again, at most often times within span: one that dies at once would otherwise be
// started for ever.
const (
	often = 3
	span  = time.Minute
)

// deaths are the last ends of the page's process.
type deaths struct{ at []time.Time }

// again notes one more and says whether the page is to be loaded again.
func (d *deaths) again(now time.Time) bool {
	recent := d.at[:0]
	for _, t := range d.at {
		if now.Sub(t) < span {
			recent = append(recent, t)
		}
	}
	d.at = append(recent, now)
	return len(d.at) <= often
}
