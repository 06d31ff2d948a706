package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
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
		err := launch(exec.Command(w[0], w[1:]...))
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", w[0], plainExec(err)))
	}
	return errors.Join(errs...)
}

// launch starts a program and looks for a moment whether it fails, as xdg-open does where there is no browser. What becomes
// of it afterwards is not the hub's business.
func launch(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(2 * time.Second):
		return nil
	}
}

func plainExec(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
