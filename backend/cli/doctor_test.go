package cli

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deskbell/backend/client"
)

// What keeps a hub from answering is said, with what helps against just that.
func TestDoctorSaysWhyAHubDoesNotAnswer(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{ // its certificate is for 127.0.0.1, and nobody trusts it
		"127.0.0.1": "have this machine trust its certificate, or name it in SSL_CERT_FILE",
		"localhost": "start it with a certificate that names localhost",
	} {
		var o bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &o, err: &o, getenv: func(string) string { return "" }}
		root := a.root()
		root.SetArgs([]string{"doctor", "--data", t.TempDir(), "--addr", "https://" + net.JoinHostPort(host, port)})
		root.SetErr(&o)
		if code := a.exitCode(root.ExecuteContext(t.Context())); code != exitFailure || !strings.Contains(o.String(), want) {
			t.Errorf("exit code %d: %s", code, &o)
		}
	}
	unknown := &client.Unreachable{URL: "https://desk.example", Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "desk.example"}}}
	if got := remedy(unknown); !strings.Contains(got, "find desk.example") {
		t.Errorf("%q", got)
	}
	if got := remedy(&client.Unreachable{URL: "http://127.0.0.1:1", Err: errors.New("refused")}); got != "" {
		t.Errorf("%q", got)
	}
}
