package desk

import (
	"net/http"
	"time"

	"deskbell/backend/protocol"
	"deskbell/backend/settings"
)

// rateView is what an agent sent the person within some time, and what became of it.
type rateView struct {
	Ms        int64 `json:"ms"` // how far back
	Asks      int   `json:"asks"`
	Tasks     int   `json:"tasks"`
	Notices   int   `json:"notices"`
	Answered  int   `json:"answered"`
	Expired   int   `json:"expired"`
	Withdrawn int   `json:"withdrawn"`
	Open      int   `json:"open"`
	MedianMs  int64 `json:"median_ms,omitempty"`
}

// budgetView is what is left of what an agent may do in a minute.
type budgetView struct {
	Kind      string `json:"kind"`
	PerMinute int    `json:"per_minute"`
	Left      int    `json:"left"`
	Refused   int    `json:"refused"`
}

// spans are how far back rates look.
var spans = [...]time.Duration{time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// rates answers with what one agent sent of late, and what it may still send now.
func (d *Desk) rates(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	agent, err := d.Fleet.Store.Agent(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	var since []time.Time
	for _, back := range spans {
		since = append(since, d.now().Add(-back))
	}
	found, err := d.Store.Rates(r.Context(), agent.ID, since...)
	if err != nil {
		return err
	}
	out := []rateView{}
	for i, x := range found {
		out = append(out, rateView{spans[i].Milliseconds(), x.Asks, x.Tasks, x.Notices, x.Answered, x.Expired, x.Withdrawn, x.Open, x.Median.Milliseconds()})
	}
	v := map[string]any{"rates": out, "max_open": d.Settings.Get().Int(settings.InboxDepth)}
	if budgets := []budgetView{}; agent.Protocol == "ma2h" { // what ACS asks is bounded by what waits alone
		for _, x := range d.Budgets(agent.ID) {
			budgets = append(budgets, budgetView(x))
		}
		v["budgets"] = budgets
	}
	return protocol.WriteJSON(w, http.StatusOK, v)
}
