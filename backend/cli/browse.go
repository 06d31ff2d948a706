package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// browse opens a URL with one of $BROWSER's programs, as Unix has them (several are separated by colons, %s stands for
// the URL), or with the system's own way.
func (a *app) browse(url string) error {
	var ways [][]string
	for _, program := range strings.Split(a.getenv("BROWSER"), ":") {
		words := strings.Fields(program)
		if len(words) == 0 {
			continue
		}
		placed := false
		for i, w := range words {
			if strings.Contains(w, "%s") {
				words[i], placed = strings.ReplaceAll(w, "%s", url), true
			}
		}
		if !placed {
			words = append(words, url)
		}
		ways = append(ways, words)
	}
	if len(ways) == 0 {
		switch runtime.GOOS {
		case "darwin":
			ways = append(ways, []string{"open", url})
		case "windows":
			ways = append(ways, []string{"rundll32", "url.dll,FileProtocolHandler", url})
		default:
			ways = append(ways, []string{"xdg-open", url})
		}
	}
	var errs []error
	for _, w := range ways {
		cmd := exec.Command(w[0], w[1:]...)
		err := cmd.Start()
		if err == nil {
			go func() { _ = cmd.Wait() }() // what becomes of the browser is not the hub's business
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", w[0], plainExec(err)))
	}
	return errors.Join(errs...)
}

func plainExec(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
