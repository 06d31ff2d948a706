package desk

import (
	"time"

	"deskbell/backend/render"
)

// What the page takes: text as spans, times in milliseconds, and lists that are never null.

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMs(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// millis reads a time that an agent wrote; 0: it is none.
func millis(s string) int64 {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

func spansOrNone(s string) []render.Span {
	if s == "" {
		return nil
	}
	return render.Visible(s)
}

// list is spans as a list, also where there are none: the page asks no list whether it is one.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func shortSpans(s string) []render.Span {
	s, _ = render.Cut(s, maxStepText)
	return list(render.Visible(s))
}
