package app

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// itemID is what an item's id may look like in a link: the hub's own ids do.
var itemID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)

// ParseLink returns the item that a deskbell://item/ID link names. A bare id is taken as it is; an empty link and
// deskbell:// alone name no item and just mean the window.
func ParseLink(link string) (item string, err error) {
	if rest, ok := strings.CutPrefix(link, "deskbell:"); ok {
		rest = strings.TrimPrefix(rest, "//")
		rest, _, _ = strings.Cut(rest, "?")
		if rest = strings.TrimSuffix(rest, "/"); rest == "" {
			return "", nil
		}
		if item, ok = strings.CutPrefix(rest, "item/"); !ok {
			return "", fmt.Errorf("%q is not a link to an item (deskbell://item/ID)", link)
		}
		link = item
	}
	if link != "" && !itemID.MatchString(link) {
		return "", fmt.Errorf("%q is not the id of an item", link)
	}
	return link, nil
}

// externalURL makes a link fit to be handed to the system's browser, or refuses it. Only the web and mail leave the
// window: any other scheme may start a program. What Wails would silently refuse (it looks for characters that mean
// something to a shell) is percent-encoded, which means the same in a URL.
func externalURL(raw string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return "", errors.New("this link is not a valid address")
	}
	switch u.Scheme {
	case "http", "https":
		if u.Host == "" {
			return "", errors.New("this link has no host")
		}
		if u.User != nil {
			return "", errors.New("this link carries a user name, which often hides where it leads; it was not opened")
		}
	case "mailto":
	default:
		return "", fmt.Errorf("links of the kind %q are not opened", notNothing(u.Scheme))
	}
	if strings.ContainsAny(u.Host, "[]") {
		return "", errors.New("links to a bare IPv6 address cannot be opened from here; copy it instead")
	}
	var b strings.Builder
	for _, c := range []byte(u.String()) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("()~*!$;|{}[]<>\\`'\"^", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

func notNothing(scheme string) string {
	if scheme == "" {
		return "relative"
	}
	return scheme
}
