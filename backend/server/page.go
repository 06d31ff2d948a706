package server

import (
	"io/fs"
	"net/http"
	"strings"

	"deskbell/backend/protocol"
)

// csp is what the inbox page may do: run and load its own files, talk to the hub, and nothing else.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-src 'none'; frame-ancestors 'none'"

// page serves a file of the inbox page.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
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
	http.FileServerFS(s.Page).ServeHTTP(w, r)
}

// unrouted answers what no route does: the page's files, and errors in the one form.
func (s *Server) unrouted(w http.ResponseWriter, r *http.Request, h http.Handler) {
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && s.inPage(r.URL.Path) {
		s.page(w, r)
		return
	}
	allow, err := s.missing(r, h)
	if allow != "" {
		w.Header().Set("Allow", allow)
	}
	s.fail(w, r, err)
}

// inPage says whether the page has a file at that path. A folder would be listed, so it is none.
func (s *Server) inPage(path string) bool {
	name := strings.TrimPrefix(path, "/")
	if name == "" {
		name = "index.html"
	}
	info, err := fs.Stat(s.Page, name)
	return err == nil && !info.IsDir()
}

// missing tells a path that does not exist from a method that it does not have, and which it has.
func (s *Server) missing(r *http.Request, h http.Handler) (allow string, err error) {
	probe := &headerOnly{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		allow = probe.header.Get("Allow")
		return allow, protocol.Errorf(http.StatusMethodNotAllowed, "method_not_allowed", "this path has: "+allow)
	}
	if r.URL.Path == "/" {
		return "", protocol.Errorf(http.StatusNotFound, "not_found", "the inbox page is not part of this build: make it with `make build`")
	}
	return "", protocol.Errorf(http.StatusNotFound, "not_found", "there is nothing at this path")
}

// headerOnly takes an answer's status and header and forgets its body.
type headerOnly struct {
	header http.Header
	status int
}

func (h *headerOnly) Header() http.Header         { return h.header }
func (h *headerOnly) WriteHeader(status int)      { h.status = status }
func (h *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
