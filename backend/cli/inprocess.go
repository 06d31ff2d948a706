package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"deskbell/backend/config"
)

// httpClient reaches a hub over the network. A hub's own certificate, when the data folder names one, is trusted.
func httpClient(cfg config.Config) *http.Client {
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: 90 * time.Second, // above the longest wait
		DisableKeepAlives:     true,             // a hub that was restarted must not be met on a dead connection
	}
	if cfg.TLSCert != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if pem, err := os.ReadFile(cfg.TLSCert); err == nil && pool.AppendCertsFromPEM(pem) {
			t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// inProcess sends requests to a handler in this process. Answers stream.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "in-process"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	body, pipe := io.Pipe()
	w := &pipeWriter{pipe: pipe, header: http.Header{}, started: make(chan struct{})}
	go func() {
		defer func() {
			err := error(nil)
			if p := recover(); p != nil {
				err = errors.New("the answer was broken off")
			}
			w.WriteHeader(http.StatusOK) // if nothing was written
			pipe.CloseWithError(err)     // nil: the end
		}()
		p.handler.ServeHTTP(w, in)
	}()
	select {
	case <-w.started:
	case <-ctx.Done():
		cancel()
		body.Close() // nobody will read: what the handler writes yet must not wait for it
		return nil, ctx.Err()
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &cancelBody{body, cancel}, ContentLength: -1, Request: r,
	}, nil
}

type pipeWriter struct {
	pipe    *io.PipeWriter
	header  http.Header
	once    sync.Once
	status  int
	sent    http.Header
	started chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.started)
	})
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(b)
}

// cancelBody ends the handler when its reader has had enough.
type cancelBody struct {
	*io.PipeReader
	cancel func()
}

func (b *cancelBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
