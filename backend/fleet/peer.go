package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

// PeerID is the id of a peer that another protocol enrols by itself, from what it calls itself: protocol/part/part. A
// part that an id cannot hold, or that could be read as another one, is percent-encoded; an empty one is "~". The last part
// may have "/" in it as it is: the parts before it never do, so it is still known where it begins. Different parts, of one
// number, never make the same id.
func PeerID(protocol string, parts ...string) string {
	id, room := protocol, maxPart
	if len(parts) == 1 {
		room = maxID - len(protocol) - len("/")
	}
	for i, p := range parts {
		if last := i == len(parts)-1; !last || !plainPath(p, room) {
			p = peerPart(p, room)
		}
		id += "/" + p
	}
	return id
}

// EarlierPeerID is what PeerID made of these parts in earlier versions: every "/" of a part was encoded, and one part alone had
// no more room than one of several.
func EarlierPeerID(protocol string, parts ...string) string {
	id := protocol
	for _, p := range parts {
		id += "/" + peerPart(p, maxPart)
	}
	return id
}

// IsPeerID says whether an id is the PeerID of these parts, also as it was in earlier versions.
func IsPeerID(id, protocol string, parts ...string) bool {
	return id == PeerID(protocol, parts...) || id == EarlierPeerID(protocol, parts...)
}

// plainPath says whether a part can be the end of an id as it is.
func plainPath(part string, room int) bool {
	return len(part) <= room && !strings.ContainsAny(part, "%~") && isPart(part)
}

// isPart says whether a part can stand in an id as it is, behind the plain letters of its protocol: what reads as its own beside
// others of its kind may pass for something else there.
func isPart(part string) bool {
	return CheckID(part) == nil && checkVisible("x/"+part) == nil
}

// maxPart bounds each of several parts of a peer's id, so that they fit into one beside their protocol.
const maxPart = 96

func peerPart(part string, room int) string {
	if part == "" {
		return "~"
	}
	encoded := part
	if strings.ContainsAny(part, "/%~") || !isPart(part) {
		var b strings.Builder
		dots := strings.Trim(part, ".") == ""
		for i := range len(part) {
			c := part[i]
			if plain(c) && !(dots && c == '.') {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
		encoded = b.String()
	}
	if len(encoded) > room {
		sum := sha256.Sum256([]byte(part))
		end := room - 33
		for end > 0 && encoded[end]&0xc0 == 0x80 { // not within a letter
			end--
		}
		encoded = encoded[:end] + "~" + hex.EncodeToString(sum[:16])
	}
	return encoded
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._:@+=,", c) >= 0
}

// Peer enrols a peer that has proved itself in its own protocol, if it is new, and notes that it was seen. It has no
// credential. id is one that PeerID made. A revoked peer is returned as it is, with its RevokedAt: the caller refuses it.
func (f *Fleet) Peer(ctx context.Context, id, protocol string) (Agent, error) {
	rest, ok := strings.CutPrefix(id, protocol+"/")
	if !ok || rest == "" || checkText(id) != nil {
		return Agent{}, inbox.Invalid("/agent_id", "%q is not the id of a peer of %s", id, protocol)
	}
	a, err := f.Store.Agent(ctx, id)
	if errors.Is(err, ErrUnknownAgent) {
		a, err = f.Store.AddPeer(ctx, Agent{ID: id, Protocol: protocol, CreatedAt: f.Now(), Alg: signing.AlgHMAC, Policy: Policy{CallbackHosts: []string{}}},
			Audit{At: f.Now(), Actor: string(inbox.Agent) + ":" + id, Action: "peer enrolled", Target: id, Result: "done"})
		if err == nil {
			f.OnChange(id, false)
		}
	}
	if err == nil && a.RevokedAt.IsZero() {
		f.Seen(id)
	}
	return a, err
}

// Readmit lets a peer that was revoked in again: it needs no new credential, only leave. Errors: ErrUnknownAgent also for
// an agent that is no peer; that one is enrolled anew.
func (f *Fleet) Readmit(ctx context.Context, id string) error {
	if err := f.Store.Readmit(ctx, id, f.audit("peer readmitted", id)); err != nil {
		return err
	}
	f.OnChange(id, false)
	return nil
}
