package fleet_test

import (
	"strings"
	"testing"

	"deskbell/backend/fleet"
)

func TestAnIDCannotBeMistakenForAnother(t *testing.T) {
	for _, id := range []string{"deploy-bot", "repo/agent", "Ünï", "机器人", "агент", "a.b", "humane", "bot:human", "...", "bot@host:8080"} {
		if err := fleet.CheckID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{
		"", "a b", "a#b", "a\x00b", "a\u202eb", "a\u200bb", "a\u034fb", "a\ufe0fb", "a\U000e0100b", "a\U000e0fffb", "a\u2065b", "a\u0378b",
		"e\u0301", "dеploy", "a\xffb", "/", ".", "..", "/a", "a/", "a//b", "a/./b", "a/../b", "map/x", "human", "Human", "human:root", "ѕсоре", "team∕bot", "a‐b", "x․y", "а", strings.Repeat("a", 201),
	} {
		if err := fleet.CheckID(id); err == nil {
			t.Errorf("%q is an id", id)
		}
	}
}
