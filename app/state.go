package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

const (
	defaultWidth, defaultHeight = 1180, 760
	minWidth, minHeight         = 640, 420
)

// place is where the window was, kept in window.json in the data folder.
type place struct {
	X         int      `json:"x"`
	Y         int      `json:"y"`
	Width     int      `json:"width"`
	Height    int      `json:"height"`
	Maximised bool     `json:"maximised,omitempty"`
	Screens   []screen `json:"screens,omitempty"` // the position means something only on the same screens
	ToldAbout bool     `json:"told_about_closing,omitempty"`
}

type screen struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// loadPlace reads window.json. Whatever is wrong with it, there is a usable answer: nobody should lose their inbox over
// where its window was.
func loadPlace(data string) (p place, known bool) {
	text, err := os.ReadFile(filepath.Join(data, "window.json"))
	if err == nil && json.Unmarshal(text, &p) == nil {
		known = p.Width > 0 && p.Height > 0
	}
	if !known {
		p = place{Width: defaultWidth, Height: defaultHeight, ToldAbout: p.ToldAbout}
	}
	p.Width = clamp(p.Width, minWidth, 16384)
	p.Height = clamp(p.Height, minHeight, 16384)
	return p, known
}

func clamp(n, low, high int) int { return max(low, min(n, high)) }

// save writes window.json, whole or not at all.
func (p place) save(data string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	name := filepath.Join(data, "window.json")
	if err := os.WriteFile(name+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// fits says whether the position still means what it meant: the same screens, and a corner that can be reached.
func (p place) fits(screens []screen) bool {
	width, height := 0, 0
	for _, s := range screens {
		width, height = width+s.Width, height+s.Height
	}
	return len(screens) > 0 && slices.Equal(p.Screens, screens) &&
		p.X > -p.Width/2 && p.X < width-80 && p.Y >= 0 && p.Y < height-80
}
