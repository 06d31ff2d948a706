package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend"
	"deskbell/backend/client"
	"deskbell/backend/config"
	"deskbell/backend/notify/dbus"
)

// finding is what the doctor says of one thing.
type finding struct {
	Name  string `json:"name"`
	Level string `json:"level"` // ok, warn, fail
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
}

const (
	levelOK   = "ok"
	levelWarn = "warn"
	levelFail = "fail"
)

func (a *app) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say what to do",
		Long: "Looks at the data folder, the database, the hub, pushes, notifications, the clock and the disk, whether the hub runs\n" +
			"or not. Exit codes: 0 nothing is broken, 1 something is.",
		Example: "  deskbell doctor\n  deskbell doctor --json | jq '.checks[] | select(.level != \"ok\")'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
	a.addrFlag(c)
	return c
}

// doctor is one examination.
type doctor struct {
	*app
	cfg      config.Config
	now      time.Time
	findings []finding
}

func (d *doctor) add(level, name, do, format string, args ...any) {
	d.findings = append(d.findings, finding{name, level, fmt.Sprintf(format, args...), do})
}

func (a *app) doctor(ctx context.Context) error {
	d := &doctor{app: a, now: time.Now()}
	var err error
	if d.cfg, err = a.config(); err != nil {
		d.add(levelFail, "configuration", "mend "+config.FileName+" in the data folder", "%s", err)
	} else {
		d.add(levelOK, "configuration", "", "data folder %s, address %s", d.cfg.Data, d.address())
		d.examine(ctx)
	}
	return d.report()
}

// report prints what was found.
func (d *doctor) report() error {
	a := d.app
	bad := slices.ContainsFunc(d.findings, func(f finding) bool { return f.Level == levelFail })
	if a.json {
		return errors.Join(a.printJSON(map[string]any{"ok": !bad, "data": d.cfg.Data, "checks": d.findings}), invalidIf(bad))
	}
	var rows [][]string
	for _, f := range d.findings {
		word := map[string]string{levelOK: a.colour(green, "OK  "), levelWarn: a.colour(yellow, "warn"), levelFail: a.colour(red, "FAIL")}[f.Level]
		text := line(f.Text)
		if f.Do != "" {
			text += ": " + line(f.Do)
		}
		rows = append(rows, []string{f.Name, word, text})
	}
	for _, r := range rows {
		fmt.Fprintf(a.out, "%s  %-14s %s\n", r[1], r[0], r[2])
	}
	return invalidIf(bad)
}

// address is where a hub on this folder would listen.
func (d *doctor) address() string {
	if addr := d.getenv("DESKBELL_ADDR"); addr != "" {
		return addr
	}
	return d.cfg.Addr
}

func (d *doctor) examine(ctx context.Context) {
	d.clock()
	if !d.folder() {
		d.add(levelOK, "hub", "", "has not run here yet: `deskbell serve` or the window makes the folder")
		d.port()
		d.notifications(ctx)
		return
	}
	d.disk()
	h := d.hub(ctx)
	if h != nil {
		d.health(ctx, h)
		if err := h.close(); err != nil {
			d.add(levelWarn, "database", "", "closing it: %s", err)
		}
	}
	if h == nil || h.offline {
		d.notifications(ctx)
	}
}

// folder looks at the data folder and its files; false when there is none.
func (d *doctor) folder() bool {
	info, err := os.Stat(d.cfg.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		d.add(levelFail, "data folder", "make it readable for you", "%s", err)
		return false
	case !info.IsDir():
		d.add(levelFail, "data folder", "give another one with --data", "%s is not a folder", d.cfg.Data)
		return false
	}
	if runtime.GOOS == "windows" {
		d.add(levelOK, "data folder", "", "is there")
		return true
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		d.add(levelFail, "data folder", "chmod 700 "+d.cfg.Data, "others can look into it (mode %04o)", mode)
	} else {
		d.add(levelOK, "data folder", "", "only you can look into it (mode %04o)", mode)
	}
	open := []string{}
	for _, name := range append(backend.SecretFiles(), backend.OwnAgentFile, backend.DatabaseFile, backend.DatabaseFile+"-wal", backend.InfoFile) {
		if info, err := os.Stat(filepath.Join(d.cfg.Data, name)); err == nil && info.Mode().Perm()&0o077 != 0 {
			open = append(open, name)
		}
	}
	if len(open) > 0 {
		d.add(levelFail, "secret files", "chmod 600 them, and rotate what others may have read", "others can read %s", strings.Join(open, ", "))
	} else {
		d.add(levelOK, "secret files", "", "only you can read them")
	}
	return true
}

func (d *doctor) clock() {
	if y := d.now.Year(); y < 2025 || y > 2100 {
		d.add(levelFail, "clock", "set the system's clock: deadlines and signatures depend on it", "it is the year %d here", y)
		return
	}
	d.add(levelOK, "clock", "", "%s", stamp(d.now))
}

func (d *doctor) disk() {
	free, ok := freeSpace(d.cfg.Data)
	switch text := fmt.Sprintf("%d MB are free", free>>20); {
	case !ok:
	case free < 50<<20:
		d.add(levelFail, "disk", "make room where the data folder is", "%s", text)
	case free < 500<<20:
		d.add(levelWarn, "disk", "make room where the data folder is", "%s", text)
	default:
		d.add(levelOK, "disk", "", "%s", text)
	}
}

// hub finds the running hub, or opens the folder in its place; nil when neither can be.
func (d *doctor) hub(ctx context.Context) *hub {
	info, infoErr := backend.ReadInfo(d.cfg.Data)
	h, err := d.online(ctx, d.cfg)
	if err != nil {
		d.add(levelFail, "hub", remedy(err), "%s", err)
		return nil
	}
	if h != nil {
		d.add(levelOK, "hub", "", "runs at %s (pid %d)", h.URL, info.PID)
		return h
	}
	if db, err := os.Stat(filepath.Join(d.cfg.Data, backend.DatabaseFile)); err == nil && db.Size() == 0 {
		if wal, err := os.Stat(filepath.Join(d.cfg.Data, backend.DatabaseFile+"-wal")); err != nil || wal.Size() == 0 {
			d.add(levelFail, "database", "restore it from a backup (deskbell backup --help says how)", "%s is empty", backend.DatabaseFile)
			return nil
		}
	}
	h, err = d.openHere(ctx, d.cfg)
	var other *backend.RunningError
	var newer *backend.NewerError
	switch {
	case errors.As(err, &other):
		const anew = "stop that process and start it anew"
		if other.Other.URL != "" {
			if why := unreached(ctx, d.dial(d.cfg, other.Other.URL, "")); why != nil {
				d.add(levelFail, "hub", cmp.Or(remedy(why), anew), "%s, and %s", err, why)
				return nil
			}
		}
		d.add(levelFail, "hub", anew, "%s, and it does not answer", err)
	case errors.As(err, &newer):
		d.add(levelFail, "database", "use the newer version that wrote it, or another folder with --data", "has schema %d, and this version knows %d: it was left as it is", newer.Have, newer.Know)
	case err != nil:
		d.add(levelFail, "database", "restore it from a backup (deskbell backup --help says how), or start over with another --data", "%s", err)
	case infoErr == nil:
		d.add(levelWarn, "hub", "start it with `deskbell serve` or by opening its window, which replaces that file", "does not run; hub.json is left over from pid %d, which did not stop cleanly", info.PID)
		d.port()
	default:
		d.add(levelOK, "hub", "", "does not run")
		d.port()
	}
	return h
}

// remedy is what helps against what keeps a hub that runs from answering here: its name or its certificate; empty: neither.
func remedy(why error) string {
	var name *net.DNSError
	var other x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(why, &name):
		return "have this machine find " + name.Name + ", as by a line in its hosts file"
	case errors.As(why, &other):
		return "start it with a certificate that names " + other.Host
	case errors.As(why, &invalid) && invalid.Reason == x509.Expired:
		return "start it with a certificate that holds today"
	case client.Unproved(why):
		return "have this machine trust its certificate, or name it in SSL_CERT_FILE"
	}
	return ""
}

// port says whether a hub could listen here.
func (d *doctor) port() {
	addr := d.address()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		d.add(levelWarn, "port", "stop what uses it, or choose another with --addr", "a hub could not listen at %s: %s", addr, client.PlainNet(err))
		return
	}
	_ = ln.Close() // it was only tried
	d.add(levelOK, "port", "", "%s is free", addr)
}

// healthDoc is what a hub says of itself.
type healthDoc struct {
	Version  string `json:"version"`
	Dev      bool   `json:"dev"`
	Now      int64  `json:"now"`
	Database struct {
		Schema   int      `json:"schema"`
		Problems []string `json:"problems"`
	} `json:"database"`
	WithoutSecret []string            `json:"without_secret"`
	Pushes        map[string]int      `json:"pushes"`
	Hosts         map[string][]string `json:"hosts_awaiting_approval"`
	BrokenChains  int                 `json:"broken_chains"`
	Notifications struct {
		Available bool   `json:"available"`
		Reason    string `json:"reason"`
	} `json:"notifications"`
}

func (d *doctor) health(ctx context.Context, h *hub) {
	var doc healthDoc
	if err := h.Call(ctx, http.MethodGet, "/api/health", nil, &doc); err != nil {
		d.add(levelFail, "database", "look at the hub's log", "the hub could not look at it: %s", err)
		return
	}
	if len(doc.Database.Problems) > 0 {
		d.add(levelFail, "database", "stop the hub and restore it from a backup (deskbell backup --help says how)", "is damaged: %s", strings.Join(doc.Database.Problems, "; "))
	} else {
		d.add(levelOK, "database", "", "is sound, schema %d", doc.Database.Schema)
	}
	if !h.offline && doc.Version != config.Version {
		d.add(levelWarn, "version", "restart the hub with the version you mean", "the hub runs %s, this is %s", doc.Version, config.Version)
	}
	if len(doc.WithoutSecret) > 0 {
		d.add(levelFail, "signing secrets", "restore secrets.json from a backup, or `deskbell agent rotate` each of them", "missing for %s", strings.Join(doc.WithoutSecret, ", "))
	}
	if n := doc.BrokenChains; n > 0 {
		d.add(levelFail, "guarded sessions", "look at them in the window under Guardian: somebody changed the database", "the record of %s was changed", plural(n, "session"))
	}
	d.times(ctx, h, doc)
	d.pushes(doc)
	d.relaxations(ctx, h, doc)
	if !h.offline {
		if n := doc.Notifications; n.Available {
			d.add(levelOK, "notifications", "", "can be shown")
		} else {
			d.add(levelWarn, "notifications", "", "are not shown: %s", n.Reason)
		}
	}
}

// times looks for a clock that went back: rows from the future, a hub that lives in another time.
func (d *doctor) times(ctx context.Context, h *hub, doc healthDoc) {
	if apart := fromMs(doc.Now).Sub(d.now).Abs(); !h.offline && apart > time.Minute {
		d.add(levelWarn, "hub's clock", "", "is %s away from this one", span(apart))
	}
	var page messagePage
	if err := h.Call(ctx, http.MethodGet, "/v1/messages?limit=1", nil, &page); err != nil {
		return // what is wrong with the database was said
	}
	for _, m := range page.Messages {
		if t := parseTime(m.ReceivedAt); t.Sub(d.now) > time.Minute {
			d.add(levelWarn, "messages", "set the clock right: what came in the meantime sorts below", "the newest is from the future, %s", stamp(t))
		}
	}
}

func (d *doctor) pushes(doc healthDoc) {
	failed := doc.Pushes["gave_up"] + doc.Pushes["refused"]
	if failed > 0 {
		d.add(levelWarn, "pushes", "`deskbell show ID` says why; the window can send them again", "%s could not be delivered", plural(failed, "answer"))
	}
	if n := doc.Pushes["waiting_approval"]; n > 0 {
		var who []string
		for _, agent := range slices.Sorted(maps.Keys(doc.Hosts)) {
			who = append(who, agent+" to "+strings.Join(doc.Hosts[agent], " and "))
		}
		d.add(levelWarn, "pushes", "approve the host in the window under Fleet, if it is the agent's", "%s to send, when you approve where to (%s)", plural(n, "answer"), strings.Join(who, ", "))
	}
	if failed == 0 && doc.Pushes["waiting_approval"] == 0 {
		d.add(levelOK, "pushes", "", "%d delivered, %d under way", doc.Pushes["delivered"], doc.Pushes["pending"])
	}
}

// relaxations names what is laxer than it could be.
func (d *doctor) relaxations(ctx context.Context, h *hub, doc healthDoc) {
	if doc.Dev {
		d.add(levelWarn, "relaxations", "run it without --dev (DESKBELL_DEV, dev in config.toml) for real work", "developer mode is on")
	}
	var s map[string]any
	if h.Call(ctx, http.MethodGet, "/v1/settings", nil, &s) == nil && s["callbacks.allow_loopback"] == true {
		d.add(levelOK, "relaxations", "", "approved callbacks may reach this machine (callbacks.allow_loopback)")
	}
}

// notifications asks the desktop whether it shows any, for a hub that does not run.
func (d *doctor) notifications(context.Context) {
	if runtime.GOOS != "linux" {
		return
	}
	s := dbus.New(dbus.Options{App: "Deskbell", Getenv: d.getenv})
	defer s.Close()
	if ok, reason := s.Available(); ok {
		d.add(levelOK, "notifications", "", "the desktop can show them")
	} else {
		d.add(levelWarn, "notifications", "nothing, if this machine has no desktop", "cannot be shown: %s", reason)
	}
}
