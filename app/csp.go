package app

import "net/http"

// policy lets the page use what came with it and nothing else: no inline script, no remote anything, no other hub. Wails'
// own scripts are files of the same origin; bindings and events do not pass through it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'none'; frame-src 'none'; frame-ancestors 'none'"

// guard sets the headers that hold for whatever is shown in the window, whoever serves it.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&guardedWriter{ResponseWriter: w}, r)
	})
}

// guardedWriter sets the headers last, so that a handler cannot loosen them.
type guardedWriter struct {
	http.ResponseWriter
	done bool
}

func (w *guardedWriter) WriteHeader(code int) {
	if !w.done {
		w.done = true
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *guardedWriter) Write(p []byte) (int, error) {
	if !w.done {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

func (w *guardedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
