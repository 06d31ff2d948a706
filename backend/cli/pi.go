package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/spf13/cobra"

	"deskbell/backend"
	"deskbell/backend/config"
	"deskbell/backend/loopback"
	"deskbell/backend/piproc"
	"deskbell/backend/pirpc"
)

func (a *app) piCommand() *cobra.Command {
	var program string
	var gate bool
	c := &cobra.Command{
		Use:   "pi [--] ARG...",
		Short: "Run pi in this terminal's surroundings, under the hub",
		Long: "Runs `pi --mode rpc ARG...` here, with this terminal's folder and environment, and connects it to the hub: the session\n" +
			"appears in the window, where it is told what to do and where its extensions' questions are answered. While the hub\n" +
			"is away pi goes on, and what it says meanwhile is handed over when the hub is back. Ctrl-C ends pi in good order.\n\n" +
			"Exit code: pi's own; 130 when it was interrupted here.",
		Example: "  deskbell pi -- --model anthropic/claude-sonnet-4-5\n  deskbell pi --gate -- --continue",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.pi(cmd.Context(), program, gate, args)
		},
	}
	c.Flags().StringVar(&program, "pi", "", "the `PROGRAM` to run (or DESKBELL_PI; default: pi)")
	c.Flags().BoolVar(&gate, "gate", false, "load the hub's gate, so that every call of a tool asks leave")
	a.addrFlag(c)
	return c
}

// errNoMode: the relay speaks RPC and nothing else.
var errNoMode = errors.New("--mode is the relay's own: pi runs with --mode rpc")

func (a *app) pi(ctx context.Context, program string, gate bool, args []string) error {
	for _, arg := range args {
		if arg == "--mode" || strings.HasPrefix(arg, "--mode=") {
			return usagef("%w", errNoMode)
		}
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if program == "" {
		program = cfg.Pi
	}
	r := newRelay(a, cfg, args)
	if r.folder, err = os.Getwd(); err != nil {
		return err
	}
	all := []string{"--mode", "rpc"}
	if gate {
		file, err := backend.WritePiGate(cfg.Data)
		if err != nil {
			return err
		}
		all = append(all, "-e", file)
	}
	all = append(all, args...)
	r.args = all[2:] // the gate among them: who takes the session up again is to have it too
	conn, err := r.dial(ctx)
	if err != nil {
		return err
	}
	if r.pi, err = piproc.Start(piproc.Spec{Path: program, Args: all, MaxLine: maxRelayed}); err != nil {
		_ = conn.CloseNow()
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			a.say("pi is a program of its own: npm install -g @earendil-works/pi-coding-agent, or name one that is installed with --pi PROGRAM")
		}
		return err
	}
	return r.run(ctx, conn)
}

// ended is how the relay's pi ended, as this command ends.
func (r *relay) ended(ctx context.Context, e piproc.Exit) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case e.Code == 0:
		return nil
	}
	return &exit{code: e.Code, err: errors.New(e.String())}
}

// dial connects to the hub as the operator.
func (r *relay) dial(ctx context.Context) (*websocket.Conn, error) {
	base, err := r.find(r.cfg)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(base); err != nil || !loopback.Host(u.Hostname()) {
		return nil, fmt.Errorf("%s is another machine: a pi is connected to a hub on this one only", base)
	}
	token, err := operatorToken(r.cfg.Data)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, answer, err := websocket.Dial(ctx, base+"/pi", &websocket.DialOptions{
		HTTPClient: httpClient(r.cfg), HTTPHeader: http.Header{"Authorization": {"Bearer " + token}, "User-Agent": {"deskbell/" + config.Version}}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		if answer != nil && answer.StatusCode == http.StatusUnauthorized {
			return nil, fmt.Errorf("the hub at %s does not take this data folder's operator token: it runs on another folder (--data DIR)", base)
		}
		return nil, fmt.Errorf("the hub at %s does not answer: %w", base, err)
	}
	conn.SetReadLimit(maxRelayed)
	return conn, nil
}

// fromHub hands what the hub says to pi: records that are one JSON object each, and nothing else.
func (r *relay) fromHub(ctx context.Context, conn *websocket.Conn) error {
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		var head struct {
			Type string `json:"type"`
		}
		frame = bytes.TrimSpace(frame)
		if len(frame) == 0 || frame[0] != '{' || bytes.IndexByte(frame, '\n') >= 0 || json.Unmarshal(frame, &head) != nil {
			continue
		}
		if head.Type == backend.PiRelayStop {
			r.pi.Stop()
			continue
		}
		var went func(wrote bool)
		if id, ok := pirpc.AnswerID(frame); ok {
			r.answered(id)
			went = func(wrote bool) {
				if wrote {
					r.put(said{record: meta(backend.PiRelayRecord{Type: backend.PiRelayWrote, ID: id})})
				}
			}
		} else {
			r.overheard(frame)
		}
		if err := r.pi.Hand(frame, went); err != nil && !errors.Is(err, piproc.ErrEnded) {
			r.say("%s", err)
			r.pi.Stop()
		}
	}
}
