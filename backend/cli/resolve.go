package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"deskbell/backend/client"
	"deskbell/backend/inbox"
)

type resolveFlags struct {
	as                         agentFlags
	decline, complete, dismiss bool
	input, comment, edited     string
	checks                     []string
}

func (a *app) resolveCommand() *cobra.Command {
	f := &resolveFlags{}
	c := &cobra.Command{
		Use:   "resolve ID [VALUE]",
		Short: "Answer a question, or end a task",
		Long: "Decides a message, at once. For a question: VALUE is one of its answers (`show ID` lists them; for one that asks\n" +
			"for an object, JSON), or --decline. For a task: --complete or --dismiss, with --check for the lines that are done.\n" +
			"A call that an agent asks leave for can be allowed with other arguments (--edited), where its agent takes them; the\n" +
			"comment is the reason that the agent reads.\n\n" +
			"It is decided as the operator; with --agent (or DESKBELL_AGENT) and its token as that agent, if the message lets it.",
		Example: "  deskbell resolve msg_0abc ship --comment \"after lunch\"\n  deskbell resolve msg_0abc --decline\n" +
			"  deskbell resolve msg_0abc --input '{\"port\": 8080}'\n  deskbell resolve msg_0def --complete --check 1 --check 2\n" +
			"  deskbell resolve msg_0fed deny --comment \"not on the main branch\"\n" +
			"  deskbell resolve msg_0fed allow_edited --edited '{\"command\": \"ls\"}'",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeOpen,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.resolve(cmd.Context(), f, args) },
	}
	fl := c.Flags()
	fl.BoolVar(&f.decline, "decline", false, "decline the question")
	fl.BoolVar(&f.complete, "complete", false, "the task is done")
	fl.BoolVar(&f.dismiss, "dismiss", false, "the task will not be done")
	fl.StringVar(&f.input, "input", "", "answer with an object: `JSON`, @FILE, or - for standard input")
	fl.StringVar(&f.edited, "edited", "", "allow a call with these arguments instead: `JSON`, an object of the changed ones, @FILE, or - for standard input")
	fl.StringVar(&f.comment, "comment", "", "a `TEXT` for the agent")
	fl.StringArrayVar(&f.checks, "check", nil, "line `N` of the checklist is done (1 is the first, \"all\" is all); may be repeated")
	f.as.add(c, "decide", asOperator)
	a.addrFlag(c)
	return c
}

// resolution names what the flags and arguments decide; value is the raw VALUE argument or nil.
func (f *resolveFlags) resolution(args []string) (resolution string, value *string, err error) {
	var said []string
	if len(args) == 2 {
		said, value = append(said, "answered"), &args[1]
	}
	if f.edited != "" && value == nil {
		allow := inbox.AllowEdited
		said, value = append(said, "answered"), &allow
	}
	for name, on := range map[string]bool{"answered": f.input != "", "declined": f.decline, "completed": f.complete, "dismissed": f.dismiss} {
		if on {
			said = append(said, name)
		}
	}
	if len(said) != 1 {
		return "", nil, usagef("say one thing: a VALUE, --input, --decline, --complete or --dismiss")
	}
	if f.checks != nil && said[0] != "completed" && said[0] != "dismissed" {
		return "", nil, usagef("--check goes with --complete or --dismiss")
	}
	return said[0], value, nil
}

func (a *app) resolve(ctx context.Context, f *resolveFlags, args []string) error {
	f.as = a.actsAs(f.as)
	resolution, value, err := f.resolution(args)
	if err != nil {
		return err
	}
	body := map[string]any{"resolution": resolution}
	if f.comment != "" {
		body["comment"] = f.comment
	}
	if f.input != "" {
		if body["value"], err = a.objectOf("--input", f.input); err != nil {
			return err
		}
	}
	if f.edited != "" {
		if f.as.id != "" || f.as.token != "" {
			return usagef("--edited is for the operator")
		}
		arguments, err := a.objectOf("--edited", f.edited)
		if err != nil {
			return err
		}
		body["edited"] = map[string]any{"arguments": arguments}
	}
	path := "/v1/messages/" + url.PathEscape(args[0])
	act := func(call func(method, path string, body, out any) error, readable bool) error {
		var m message
		if value != nil {
			body["value"] = *value
		}
		if readable && (value != nil || f.checks != nil) {
			if err := call(http.MethodGet, path, nil, &m); err != nil {
				return fmtID(args[0], err)
			}
			if f.edited != "" && !m.takesEdits() {
				return usagef("--edited: %s cannot be allowed with other arguments than it asked for; allow it as it is, or deny it with a --comment", args[0])
			}
			if m.Type == "task" && value != nil {
				return usagef("%s is a task: --complete or --dismiss ends it", args[0])
			}
			if m.Request != nil && m.Request.Mode == "input" && value != nil {
				if body["value"], err = object("VALUE", *value); err != nil {
					return err
				}
			}
			if f.checks != nil {
				if body["checklist"], err = checked(m, f.checks); err != nil {
					return err
				}
			}
		}
		var done json.RawMessage
		if err := call(http.MethodPost, path+"/resolve", body, &done); err != nil {
			if e, ok := client.Refused(err, "already_terminal"); ok {
				return lost(args[0], e)
			}
			if _, ok := client.Refused(err, "invalid_field"); ok && value != nil && m.Request != nil {
				a.showRequest(a.err, m.Request)
			}
			return fmtID(args[0], err)
		}
		if a.json {
			return a.printJSON(done)
		}
		a.tell("%s: %s", args[0], resolution)
		return nil
	}
	if f.as.id != "" || f.as.token != "" {
		ag, err := a.agent(f.as)
		if err != nil {
			return err
		}
		if f.checks != nil {
			return usagef("--check is for the operator: an agent sees the checklist of its own messages only")
		}
		return act(func(method, path string, body, out any) error { return ag.Call(ctx, method, path, body, out) }, false)
	}
	return a.asOperator(ctx, func(h *hub) error {
		err := act(func(method, path string, body, out any) error { return h.Call(ctx, method, path, body, out) }, true)
		if err == nil && h.offline {
			a.say("No hub is running: the agent learns of it when one does.")
		}
		return err
	})
}

// takesEdits says whether the message is a call whose agent goes on with other arguments.
func (m message) takesEdits() bool {
	return m.Request != nil && slices.ContainsFunc(m.Request.Options, func(o option) bool { return o.Value == inbox.AllowEdited })
}

// checked is the message's checklist with the named lines done.
func checked(m message, lines []string) ([]check, error) {
	if m.Action == nil || len(m.Action.Checklist) == 0 {
		return nil, usagef("--check: this message has no checklist")
	}
	list := m.Action.Checklist
	for _, l := range lines {
		if l == "all" {
			for i := range list {
				list[i].Done = true
			}
			continue
		}
		n, err := strconv.Atoi(l)
		if err != nil || n < 1 || n > len(list) {
			return nil, usagef("--check: %q is not a line from 1 to %d, or all", l, len(list))
		}
		list[n-1].Done = true
	}
	return list, nil
}

// lost says how a message really ended, to one who came too late.
func lost(id string, e *client.Error) error {
	var real struct {
		Status string `json:"status"`
	}
	_ = json.Unmarshal(e.Body, &real) // without it the message says less
	return fmt.Errorf("%s has ended already: %s", id, strings.ToValidUTF8(real.Status, "?"))
}

func (a *app) cancelCommand() *cobra.Command {
	var as agentFlags
	var comment string
	c := &cobra.Command{
		Use:   "cancel ID",
		Short: "Take a question back, as the agent that asked it",
		Long: "Takes a question back. Only the agent that asked can: the command line's own agent for what `deskbell ask` asked,\n" +
			"another with --agent and its token. (The person declines instead: `deskbell resolve ID --decline`.)",
		Example: "  deskbell cancel msg_0abc\n  DESKBELL_TOKEN=… deskbell cancel msg_0abc --agent deploybot --comment \"not needed any more\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ag, err := a.agent(as)
			if err != nil {
				return err
			}
			if ag.own && ag.token == "" {
				return fmt.Errorf("nothing was asked from this data folder's command line yet: act as the agent that asked with --agent and its token")
			}
			body := map[string]string{}
			if comment != "" {
				body["comment"] = comment
			}
			var done json.RawMessage
			err = ag.Call(cmd.Context(), http.MethodPost, "/v1/messages/"+url.PathEscape(args[0])+"/cancel", body, &done)
			if e, ok := client.Refused(err, "already_terminal"); ok {
				return lost(args[0], e)
			}
			if _, ok := client.Refused(err, "not_found"); ok {
				return fmt.Errorf("%s: no such message of %s", args[0], ag.id)
			}
			if err != nil {
				return fmtID(args[0], err)
			}
			if a.json {
				return a.printJSON(done)
			}
			a.tell("%s: cancelled", args[0])
			return nil
		},
	}
	as.add(c, "cancel", asOwn)
	c.Flags().StringVar(&comment, "comment", "", "a `TEXT` for the record")
	a.addrFlag(c)
	return c
}
