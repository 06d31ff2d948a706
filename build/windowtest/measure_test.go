//go:build window

package windowtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMeasure prints what the window takes; make bench shows it.
func TestMeasure(t *testing.T) {
	if os.Getenv("DESKBELL_MEASURE") == "" {
		t.Skip("make bench measures")
	}
	var ms []int
	var pss int
	for range 5 {
		p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
		ms = append(ms, p.awaitPainted())
		pss = tree(p.pid)
		p.signal(syscall.SIGTERM)
		p.awaitExit()
	}
	slices.Sort(ms)
	fmt.Printf("first paint: best %d ms, median %d ms; memory (PSS, with WebKit's processes): %d MiB\n", ms[0], ms[2], pss>>10)
}

// arrival notes when each row is there for the first time, and what a key takes until the answer form of the item that it
// selects is painted: the frame after the one in which its choices are in the page.
const arrival = `
	window.seenAt = {};
	window.took = [];
	let pressed = 0, before = '';
	const title = () => document.querySelector('h2')?.innerText ?? '';
	addEventListener('keydown', () => { pressed = performance.now(); before = title() }, true);
	new MutationObserver(() => {
		for (const row of document.querySelectorAll('.row[data-id]')) window.seenAt[row.dataset.id] ??= Date.now();
		if (!pressed || title() === before || !document.querySelector('[data-decision] li button')) return;
		const from = pressed;
		pressed = 0;
		requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = () => window.took.push(performance.now() - from); c.port2.postMessage(0) });
	}).observe(document, {childList: true, subtree: true, characterData: true, attributes: true, attributeFilter: ['data-id']})`

// TestMeasureManyItems prints what a key and an arrival take with ten thousand items waiting.
func TestMeasureManyItems(t *testing.T) {
	if os.Getenv("DESKBELL_MEASURE") == "" {
		t.Skip("make bench measures")
	}
	const many, keys, arrivals = 10_000, 40, 20
	p, d := drive(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	token := p.agent("e2e/agent")
	p.request("PATCH", "/v1/settings", p.operator(), 200, map[string]int{"rate_limit.requests_per_minute": 10_000_000, "rate_limit.inbox_depth": 1_000_000}, nil)
	began := time.Now()
	p.message("e2e/agent", "", "") // so that what they share is known
	var posts sync.WaitGroup
	for w := range 8 {
		posts.Go(func() {
			for i := w; i < many; i += 8 {
				p.ask(token, "e2e/agent", fmt.Sprintf("Question %d: shall this be done?", i), "Some **words** about it.\n\n```\nand code\n```")
			}
		})
	}
	posts.Wait()
	fmt.Printf("%d items posted: %.1f s\n", many, time.Since(began).Seconds())
	await(t, "all of them", func() bool { w, ok := p.visible(); return ok && xdo(t, "getwindowname", w) == "(999+) Deskbell" })
	d.script(nil, arrival)
	for i := range keys {
		d.keys("j")
		var n int
		await(t, "the form", func() bool { d.script(&n, "return window.took.length"); return n > i })
	}
	var took []float64
	d.script(&took, "return window.took")
	report("key → painted answer form, 10,000 items", took, keys)

	d.script(nil, "document.querySelector('[data-list]').scrollTop = 0")
	var late []float64
	for i := range arrivals {
		m := p.message("e2e/agent", fmt.Sprintf("Now %d", i), "")
		m["priority"] = "urgent" // to the top, where it can be seen
		var got struct{ ID string }
		p.request("POST", "/v1/messages", token, 202, m, &got)
		accepted := time.Now()
		var seen float64
		await(t, "the row", func() bool { d.script(&seen, "return window.seenAt[arguments[0]] ?? 0", got.ID); return seen > 0 })
		late = append(late, max(0, seen-float64(accepted.UnixMicro())/1000))
	}
	report("new item, 202 → row in the window, 10,000 items", late, arrivals)
	fmt.Printf("memory with 10,000 items (PSS, with WebKit's processes): %d MiB\n", tree(p.pid)>>10)
}

func report(what string, ms []float64, want int) {
	slices.Sort(ms)
	if len(ms) == 0 {
		fmt.Printf("%s: nothing was measured\n", what)
		return
	}
	fmt.Printf("%s: median %.0f ms, 95 %% %.0f ms, worst %.0f ms (%d of %d)\n", what, ms[len(ms)/2], ms[len(ms)*95/100], ms[len(ms)-1], len(ms), want)
}

// tree is the memory in KiB that a process and all below it hold, shared pages counted in part.
func tree(pid int) (kib int) {
	rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for _, line := range strings.Split(string(rollup), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
			kib, _ = strconv.Atoi(f[1])
		}
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				kib += tree(n)
			}
		}
	}
	return kib
}
