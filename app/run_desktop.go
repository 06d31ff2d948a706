//go:build desktop && !bindings

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/menu"
	"github.com/wailsapp/wails/v2/pkg/options"
	"github.com/wailsapp/wails/v2/pkg/options/assetserver"
	"github.com/wailsapp/wails/v2/pkg/options/linux"
	"github.com/wailsapp/wails/v2/pkg/options/mac"
	"github.com/wailsapp/wails/v2/pkg/options/windows"
	wailsruntime "github.com/wailsapp/wails/v2/pkg/runtime"

	"deskbell/backend/notify"
	"deskbell/build"
)

// Available says whether this binary can open a window.
const Available = true

// Names that the page and the window agree on. The page hears eventChanged and eventOpenItem, and emits the others.
const (
	eventChanged  = "changed"   // from the hub: one object {rev, items, topics}
	eventOpenItem = "open-item" // to the page: the id of the item to show
	eventPainted  = "painted"   // from the page, once, in its second animation frame
	eventFocus    = "focus"     // from the page: whether it has the focus
	eventQuit     = "quit"      // from the page: the person wants to end the program (Ctrl+Q)
)

// settleTime is how long the end of the program waits at most for what runs beside the window.
const settleTime = 2 * time.Second

// window is the one window of this process.
type window struct {
	hub     Hub
	opts    Options
	log     *slog.Logger
	stop    context.Context // ends when the program is told to end
	life    context.Context // ends when the window is gone, however that came
	desktop *Desktop
	sender  notify.Sender
	center  *notify.Center

	running sync.WaitGroup // what runs beside the window until life ends

	started chan struct{} // closed when ctx is set
	ctx     context.Context
	unhook  func() bool // so as not to quit what has ended
	ready   sync.Once   // the page is there for the first time

	quitting atomic.Bool
	painted  atomic.Bool
	hidden   atomic.Bool
	loaded   atomic.Bool
	dead     atomic.Bool // the page ended too often, and is not there

	mu     sync.Mutex
	place  place
	known  bool // place comes from an earlier run
	deaths deaths
}

// Check says what stands in the way of a window, before anything is opened for it.
func Check() error {
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return errors.New("no display for the window (neither DISPLAY nor WAYLAND_DISPLAY is set); deskbell serve needs none")
	}
	return nil
}

// Run opens the window and returns when the program is to end: when ctx ends, or when the person quits. Closing the
// window only hides it; a second start, a click on a notification, and the dock bring it back.
func Run(ctx context.Context, hub Hub, opts Options) (err error) {
	item, err := ParseLink(opts.Link)
	if err != nil {
		return err
	}
	w := &window{hub: hub, opts: opts, log: opts.Log, stop: ctx, started: make(chan struct{})}
	life, cancel := context.WithCancel(ctx)
	w.life = life
	defer func() { cancel(); w.settle() }()
	if w.log == nil {
		w.log = slog.Default()
	}
	if w.opts.Started.IsZero() {
		w.opts.Started = time.Now()
	}
	w.sender = w.newSender()
	w.center = notify.NewCenter(w.sender)
	w.center.Log = w.log
	w.place, w.known = loadPlace(opts.Data)
	w.hidden.Store(opts.Hidden)
	w.desktop = &Desktop{
		item:     item,
		open:     func(url string) { wailsruntime.BrowserOpenURL(w.wails(), url) },
		setTitle: func(title string) { wailsruntime.WindowSetTitle(w.wails(), title) },
	}

	stop, err := listen(opts.Data, w.show)
	if err != nil {
		// The window is of use without it; a second start will say that the folder is taken.
		w.log.Warn("a second start cannot reach this window", "reason", err.Error())
	} else {
		defer stop()
	}

	w.unhook = context.AfterFunc(ctx, w.quit)

	// GTK panics where it cannot reach the display it was told about.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the window cannot be opened: %v", p)
		}
	}()
	return wails.Run(w.options())
}

// settle waits for what runs beside the window, so that none of it reads a hub that is being closed. It has a bound: what
// talks to the desktop may hang there, and the program ends all the same.
func (w *window) settle() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.running.Wait()
		if s, ok := w.sender.(interface{ Close() }); ok {
			s.Close()
		}
	}()
	select {
	case <-ended:
	case <-time.After(settleTime):
		w.log.Warn("what runs beside the window did not end in time")
	}
}

func (w *window) options() *options.App {
	dark := systemIsDark()
	background := options.NewRGB(0xff, 0xff, 0xff)
	if dark {
		background = options.NewRGB(0x16, 0x17, 0x1a)
	}
	state := options.Normal
	if w.place.Maximised {
		state = options.Maximised
	}
	var bar *menu.Menu
	if runtime.GOOS == "darwin" {
		// macOS needs one for the clipboard's keys and for Quit; elsewhere a bar would only take room.
		bar = menu.NewMenuFromItems(menu.AppMenu(), menu.EditMenu(), menu.WindowMenu())
	}
	return &options.App{
		Title:            title(0),
		Width:            w.place.Width,
		Height:           w.place.Height,
		MinWidth:         minWidth,
		MinHeight:        minHeight,
		WindowStartState: state,
		StartHidden:      w.opts.Hidden,
		BackgroundColour: background,
		Menu:             bar,
		AssetServer:      &assetserver.Options{Handler: w.hub.Handler(), Middleware: guard},
		Bind:             []any{w.desktop},
		OnStartup:        w.onStartup,
		OnDomReady:       w.onDomReady,
		OnBeforeClose:    w.onBeforeClose,
		OnShutdown:       func(context.Context) { w.unhook() },
		DragAndDrop:      &options.DragAndDrop{DisableWebViewDrop: true},
		Linux: &linux.Options{
			Icon:             build.Icon,
			WebviewGpuPolicy: gpuPolicy(os.Getenv("DESKBELL_GPU")),
			ProgramName:      "deskbell",
		},
		Mac:     &mac.Options{OnUrlOpen: func(url string) { w.showLink(url) }},
		Windows: &windows.Options{Theme: windows.SystemDefault},
	}
}

// gpuPolicy: without the GPU the window paints sooner and takes less memory, and there is nothing here to accelerate.
func gpuPolicy(s string) linux.WebviewGpuPolicy {
	switch s {
	case "always":
		// Wails hands its own numbers to WebKit in another order: its OnDemand is WebKit's ALWAYS, and the reverse.
		return linux.WebviewGpuPolicyOnDemand
	case "ondemand":
		return linux.WebviewGpuPolicyAlways
	}
	return linux.WebviewGpuPolicyNever
}

// wails is the context that Wails' functions want; it waits until there is one.
func (w *window) wails() context.Context {
	<-w.started
	return w.ctx
}

func (w *window) onStartup(ctx context.Context) {
	w.ctx = ctx
	close(w.started)

	wailsruntime.EventsOn(ctx, eventPainted, func(...any) {
		if !w.painted.Swap(true) {
			w.log.Info("window painted", "ms", time.Since(w.opts.Started).Milliseconds())
		}
	})
	wailsruntime.EventsOn(ctx, eventQuit, func(...any) { w.quit() })
	wailsruntime.EventsOn(ctx, eventFocus, func(data ...any) {
		if len(data) == 1 {
			if yes, ok := data[0].(bool); ok {
				w.center.SetWatching(yes && !w.hidden.Load())
			}
		}
	})
	w.restorePlace()
	w.watchPage()
}

// onDomReady runs after every load of the page; what it starts, it starts once.
func (w *window) onDomReady(ctx context.Context) {
	w.loaded.Store(true)
	first := false
	w.ready.Do(func() {
		first = true
		w.running.Go(w.forward)
		w.running.Go(w.ring)
		w.running.Go(w.startTray)
	})
	if !first {
		w.log.Info("the page is there again")
	}
}

// forward tells the page what changed in the hub.
func (w *window) forward() {
	for payload := range w.hub.Changes(w.life) {
		wailsruntime.EventsEmit(w.ctx, eventChanged, json.RawMessage(payload))
	}
}

// ring shows notifications until the program ends.
func (w *window) ring() {
	ok, reason := w.notifications()
	if w.opts.Notifications != nil {
		w.opts.Notifications(ok, reason)
		w.center.Shows = w.opts.Notifications
	}
	if !ok {
		w.log.Info("notifications are not shown", "reason", reason)
	}
	events := w.hub.Attention(w.life)
	w.center.Run(w.life, events)
	for range events { // the hub is read until they end
	}
}

// show brings the window to the front and opens the item, if one is named.
func (w *window) show(item string) {
	ctx := w.wails()
	wasHidden := w.hidden.Swap(false)
	w.loadDead()
	wailsruntime.WindowShow(ctx)
	wailsruntime.WindowUnminimise(ctx) // on Linux this is gtk_window_present: it also raises
	if wasHidden {
		w.restorePlace() // the window manager has forgotten it
	}
	if item == "" {
		return
	}
	if w.loaded.Load() {
		wailsruntime.EventsEmit(ctx, eventOpenItem, item)
		return
	}
	w.desktop.mu.Lock()
	w.desktop.item = item
	w.desktop.mu.Unlock()
}

func (w *window) showLink(link string) {
	item, err := ParseLink(link)
	if err != nil {
		w.log.Warn("a link was not opened", "reason", err.Error())
	}
	go w.show(item)
}

// quit ends the program, unlike closing the window.
func (w *window) quit() {
	w.quitting.Store(true)
	wailsruntime.Quit(w.wails())
}

// onBeforeClose hides the window instead of closing it, unless the program is to end.
func (w *window) onBeforeClose(ctx context.Context) (prevent bool) {
	if !w.hidden.Load() {
		w.keepPlace(ctx)
	}
	if w.ending() {
		return false
	}
	w.hidden.Store(true)
	wailsruntime.WindowHide(ctx)
	w.center.SetWatching(false)
	w.tellAboutClosing()
	return true
}

// ending says whether a request to close means the end. A page that never painted cannot be asked to quit, so closing it
// has to do, unless the window has a button for that.
func (w *window) ending() bool {
	return !w.painted.Load() && !w.opts.Hidden && !w.dead.Load() || w.toldToEnd()
}

// toldToEnd says whether the program is ending. Wails turns SIGTERM into a request to close, and Ctrl+C ends the page's
// process, at about the moment when our own context ends: wait for it.
func (w *window) toldToEnd() bool {
	if w.quitting.Load() {
		return true
	}
	select {
	case <-w.stop.Done():
		return true
	case <-time.After(50 * time.Millisecond):
		return w.quitting.Load()
	}
}

// tellAboutClosing says, the first time ever, that the program goes on.
func (w *window) tellAboutClosing() {
	w.mu.Lock()
	told := w.place.ToldAbout
	w.place.ToldAbout = true
	p := w.place
	w.mu.Unlock()
	if told {
		return
	}
	if err := p.save(w.opts.Data); err != nil {
		w.log.Warn("the window's place was not kept", "reason", err.Error())
	}
	ctx, cancel := context.WithTimeout(w.life, 5*time.Second)
	defer cancel()
	// Where notes cannot be shown this was said at the start.
	_ = w.sender.Send(ctx, notify.Note{
		ID:    "closed",
		Title: "Deskbell keeps running",
		Body:  "Questions still ring. Start Deskbell again to see it; Ctrl+Q in its window quits.",
	})
}

// keepPlace remembers where the window is.
func (w *window) keepPlace(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.place.Maximised = wailsruntime.WindowIsMaximised(ctx)
	if !w.place.Maximised && !wailsruntime.WindowIsFullscreen(ctx) && !wailsruntime.WindowIsMinimised(ctx) {
		w.place.X, w.place.Y = wailsruntime.WindowGetPosition(ctx)
		w.place.Width, w.place.Height = wailsruntime.WindowGetSize(ctx)
	}
	w.place.Screens = screens(ctx)
	w.known = true
	if err := w.place.save(w.opts.Data); err != nil {
		w.log.Warn("the window's place was not kept", "reason", err.Error())
	}
}

// restorePlace puts the window where it was, if the screens are the ones it was on.
func (w *window) restorePlace() {
	w.mu.Lock()
	p, known := w.place, w.known
	w.mu.Unlock()
	if known && !p.Maximised && p.fits(screens(w.ctx)) {
		wailsruntime.WindowSetPosition(w.ctx, p.X, p.Y)
	}
}

func screens(ctx context.Context) []screen {
	all, err := wailsruntime.ScreenGetAll(ctx)
	if err != nil {
		return nil
	}
	var list []screen
	for _, s := range all {
		list = append(list, screen{s.Size.Width, s.Size.Height})
	}
	return list
}
