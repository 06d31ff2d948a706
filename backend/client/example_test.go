package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"deskbell/backend/client"
	"deskbell/backend/signing"
)

func Example() {
	h, cleanup := exampleHouse()
	defer cleanup()
	bot, _, err := h.agent("deploybot")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()

	// What the agent wants to know again when the answer comes; nobody else can read or change it.
	key := []byte("from the agent's own vault, never from the hub")
	state, err := client.SealState(key, map[string]string{"release": "1.4"})
	if err != nil {
		log.Fatal(err)
	}
	envelope := fmt.Appendf(nil, `{
		"ma2h_version": "0.6", "type": "ask", "created_at": %q, "idempotency_key": "ship-1.4",
		"agent": {"id": "deploybot", "run_id": "run-1", "runtime": "cli"},
		"title": "Ship it?", "state": %s,
		"request": {"mode": "confirm", "allowed_resolvers": [%q]}}`, time.Now().UTC().Format(time.RFC3339), state, h.person())
	receipt, err := bot.Submit(ctx, envelope)
	if err != nil {
		log.Fatal(err)
	}

	// Elsewhere, a person answers.
	decision := map[string]string{"resolution": "answered", "value": "approve", "comment": "go ahead"}
	if err := h.operator.Resolve(ctx, receipt.ID, "", decision); err != nil {
		log.Fatal(err)
	}

	m, err := bot.Wait(ctx, receipt.ID, time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	answer, ok := m.Answer()
	if !ok {
		log.Fatal("nobody answered in time")
	}
	var kept map[string]string
	if err := client.OpenState(key, answer.State, &kept); err != nil {
		log.Fatal(err)
	}
	if err := bot.Acknowledge(ctx, receipt.ID, "deploying"); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("release %s: %s %s, %q\n", kept["release"], answer.Resolution, answer.Response.Value, answer.Response.Comment)
	// Output: release 1.4: answered "approve", "go ahead"
}

func ExampleCollector() {
	h, cleanup := exampleHouse()
	defer cleanup()
	bot, key, err := h.agent("deploybot")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := h.operator.Tell(ctx, map[string]string{"to": "deploybot", "title": "Pause deploys"}); err != nil {
		log.Fatal(err)
	}

	verifier, err := client.NewVerifier(bot, func() ([]signing.Key, error) { return []signing.Key{key}, nil })
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "done")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	done, err := client.OpenDone(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer done.Close()
	nonces, err := client.OpenNonces(folder) // what was played is known to the next run too
	if err != nil {
		log.Fatal(err)
	}
	defer nonces.Close()
	verifier.Replay = nonces

	c := &client.Collector{
		About: &client.About{Label: "the example"},
		Consumer: &client.Consumer{
			Verifier: verifier,
			Done:     done,
			Policy:   client.AllowFrom("overseer"),
			Act: func(_ context.Context, e client.Entry) (string, error) {
				var d struct{ Title string }
				if err := json.Unmarshal(e.Object, &d); err != nil {
					return "", err
				}
				fmt.Printf("%s: %s\n", e.Kind, d.Title)
				return "paused", nil
			},
			Tell: func(e client.Event) error {
				fmt.Println(e.What, e.Note)
				return e.Err
			},
		},
	}
	if err := c.Collect(ctx, 10*time.Second); err != nil { // Follow goes on with what comes
		log.Fatal(err)
	}
	// Output:
	// directive: Pause deploys
	// acted paused
}

// exampleHouse is a hub to try against.
func exampleHouse() (*house, func()) {
	dir, err := os.MkdirTemp("", "hub")
	if err != nil {
		log.Fatal(err)
	}
	h, err := openHouse(dir)
	if err != nil {
		log.Fatal(err)
	}
	return h, func() {
		if err := h.stop(); err != nil && !strings.Contains(err.Error(), "canceled") {
			log.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			log.Fatal(err)
		}
	}
}

// person is who answers, as the hub's capability document names them.
func (h *house) person() string {
	var doc struct{ Operator string }
	if err := h.operator.Call(context.Background(), http.MethodGet, "/.well-known/ma2h", nil, &doc); err != nil {
		log.Fatal(err)
	}
	return doc.Operator
}
