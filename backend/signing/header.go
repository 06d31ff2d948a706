package signing

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// HeaderName is the HTTP header a pushed object's signature travels in.
const HeaderName = "MA2H-Signature"

// Window is how far a signature's time may lie from the verifier's, either way.
const Window = 120 * time.Second

// What can be wrong with a signature. Each is the whole reason: a malformed header was never compared, a stale one neither.
var (
	ErrMalformed = errors.New("signature header is malformed")
	ErrStale     = errors.New("signature time is outside the window")
	ErrMismatch  = errors.New("signature does not match")
)

// Header is what a signature header says.
type Header struct {
	T   int64  // Unix seconds
	JTI string // used once
	V1  string // base64url, well-formed
}

// String writes the header's value, as it stands after "MA2H-Signature: ".
func (h Header) String() string {
	return "t=" + strconv.FormatInt(h.T, 10) + ",jti=" + h.JTI + ",v1=" + h.V1
}

// Prefixed is the form a mailbox row carries: the header's name and its value in one string.
func Prefixed(value string) string { return HeaderName + ": " + value }

// ParseHeader reads a signature header's value, with or without the name in front. Each of t, jti and v1 stands exactly once, in any order;
// fields it does not know are skipped. The error wraps ErrMalformed.
func ParseHeader(s string) (Header, error) {
	if len(s) > len(HeaderName) && s[len(HeaderName)] == ':' && strings.EqualFold(s[:len(HeaderName)], HeaderName) {
		s = s[len(HeaderName)+1:]
	}
	var h Header
	seen := map[string]bool{}
	for field := range strings.SplitSeq(strings.Trim(s, " \t"), ",") {
		name, value, ok := strings.Cut(field, "=")
		if !ok || seen[name] {
			return Header{}, malformed("fields must be name=value, each once")
		}
		seen[name] = true
		switch name {
		case "t":
			t, err := strconv.ParseInt(value, 10, 64)
			if err != nil || t < 0 || strconv.FormatInt(t, 10) != value {
				return Header{}, malformed("t must be whole Unix seconds")
			}
			h.T = t
		case "jti":
			if !plain(value) {
				return Header{}, malformed("jti must be printable ASCII")
			}
			h.JTI = value
		case "v1":
			if _, err := decodeMAC(value); err != nil {
				return Header{}, err
			}
			h.V1 = value
		}
	}
	if !seen["t"] || !seen["jti"] || !seen["v1"] {
		return Header{}, malformed("t, jti and v1 must all be there")
	}
	return h, nil
}

// WellFormed says whether s may be a `v1`: base64url, padded exactly or not at all, at least 32 bytes. Nothing more is asked; in particular
// unused trailing bits may be set (MA2H 0.6 §9.2).
func WellFormed(s string) bool {
	_, err := decodeMAC(s)
	return err == nil
}

// decodeMAC returns the bytes of a well-formed `v1`.
func decodeMAC(s string) ([]byte, error) {
	body := strings.TrimRight(s, "=")
	padding := len(s) - len(body)
	switch {
	case strings.ContainsAny(body, "\r\n"): // the decoder would skip them
		return nil, malformed("v1 is not base64url")
	case padding != 0 && padding != (4-len(body)%4)%4:
		return nil, malformed("v1 is padded wrongly")
	}
	mac, err := base64.RawURLEncoding.DecodeString(body)
	switch {
	case err != nil:
		return nil, malformed("v1 is not base64url")
	case len(mac) < 32:
		return nil, malformed("v1 is shorter than 32 bytes")
	}
	return mac, nil
}

// plain tells whether s can stand in a header field: printable ASCII without space or comma, and not empty.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == ',' {
			return false
		}
	}
	return s != ""
}

func malformed(why string) error { return fmt.Errorf("%w: %s", ErrMalformed, why) }
