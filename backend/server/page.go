package server

import (
	"io/fs"
	"net/http"
	"strings"

	"deskbell/backend/protocol"
)

// csp is what the inbox page may do: run and load its own files, talk to the hub, and nothing else.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-src 'none'; frame-ancestors 'none'"

// Page serves the built inbox page from files.
func Page(files fs.FS) http.Handler {
	server := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", csp)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if strings.HasPrefix(r.URL.Path, "/assets/") {
			h.Set("Cache-Control", "public, max-age=31536000, immutable") // the names carry a hash of the content
		} else {
			h.Set("Cache-Control", "no-cache")
		}
		if r.URL.Path == "/" {
			if _, err := fs.Stat(files, "index.html"); err != nil {
				http.Error(w, "The inbox page is not part of this build: make it with `make build`.", http.StatusNotFound)
				return
			}
		}
		if name := strings.Trim(r.URL.Path, "/"); name != "" {
			if info, err := fs.Stat(files, name); err == nil && info.IsDir() { // a folder would be listed
				http.NotFound(w, r)
				return
			}
		}
		server.ServeHTTP(w, r)
	})
}

// unrouted answers what no route does: the page's files, and errors in the one form.
func (s *Server) unrouted(w http.ResponseWriter, r *http.Request, h http.Handler) {
	missing := s.missing(r, h)
	ours := missing.Status == http.StatusMethodNotAllowed || (r.Method != http.MethodGet && r.Method != http.MethodHead)
	for _, prefix := range []string{"/v1/", "/api/", "/.well-known/"} {
		ours = ours || strings.HasPrefix(r.URL.Path, prefix)
	}
	if ours {
		s.fail(w, r, missing)
		return
	}
	s.Page.ServeHTTP(w, r)
}

// missing tells a path that does not exist from a method that it does not have.
func (s *Server) missing(r *http.Request, h http.Handler) *protocol.Error {
	probe := &headerOnly{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		return protocol.Errorf(http.StatusMethodNotAllowed, "method_not_allowed", "this path has: "+probe.header.Get("Allow"))
	}
	return protocol.Errorf(http.StatusNotFound, "not_found", "there is nothing at this path")
}

// headerOnly takes an answer's status and header and forgets its body.
type headerOnly struct {
	header http.Header
	status int
}

func (h *headerOnly) Header() http.Header         { return h.header }
func (h *headerOnly) WriteHeader(status int)      { h.status = status }
func (h *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
