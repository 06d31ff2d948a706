package inbox

import (
	"crypto/rand"
	"encoding/base32"
	"strings"

	"github.com/oklog/ulid/v2"
)

// NewItemID mints a message id: time-ordered, so that neighbours are stored together.
func NewItemID() string { return "msg_" + ulid.Make().String() }

// NewOutcomeID mints a resolution id. It is an acknowledgment key, so all of its 160 bits are random (MA2H §6).
func NewOutcomeID() string { return "res_" + RandomName() }

// RandomName is 160 random bits in 32 lower-case letters and digits.
func RandomName() string {
	var b [20]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}
