package backend

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskbell/backend/config"
)

// certificate makes a certificate for names and returns its files and who trusts it.
func certificate(t *testing.T, names ...string) (certFile, keyFile string, trust *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(cert)
	return certFile, keyFile, trust
}

// A hub that listens beyond loopback is reached by the name its certificate has, and says that name in its addresses.
func TestTLSByTheNameOfTheCertificate(t *testing.T) {
	certFile, keyFile, trust := certificate(t, "hub.example")
	hub, err := Open(t.Context(), config.Config{Addr: "0.0.0.0:0", Data: t.TempDir(), TLSCert: certFile, TLSKey: keyFile, AllowedHosts: []string{"hub.example"}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := hub.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !strings.HasPrefix(hub.URL(), "https://hub.example:") {
		t.Fatalf("the hub says it is at %s", hub.URL())
	}
	c := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trust},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			var d net.Dialer
			return d.DialContext(ctx, network, "127.0.0.1:"+port)
		},
	}}
	defer c.CloseIdleConnections()
	resp, err := c.Get(hub.URL() + "/.well-known/ma2h")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), hub.URL()+"/v1/inbox") {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
}

// Without a certificate nothing but loopback is served, and without a name nobody could reach all addresses.
func TestBeyondLoopbackNeedsACertificateAndAName(t *testing.T) {
	certFile, keyFile, _ := certificate(t, "hub.example")
	for _, c := range []config.Config{
		{Addr: "0.0.0.0:0", AllowedHosts: []string{"hub.example"}},
		{Addr: "0.0.0.0:0", TLSCert: certFile, TLSKey: keyFile},
	} {
		c.Data = t.TempDir()
		hub, err := Open(t.Context(), c, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := hub.Listen(); err == nil {
			t.Errorf("%+v listens", c)
		}
		if err := hub.Close(); err != nil {
			t.Error(err)
		}
	}
}
