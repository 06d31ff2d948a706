package pi

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
	"deskbell/backend/transcript"
	"deskbell/backend/wire"
)

const (
	maxFile   = 256 << 20 // that is read, in bytes
	rowsAtOne = 200
)

// fileOf is one of the sessions that pi keeps of a folder. Errors: *inbox.InvalidError.
func fileOf(folder, path string) (File, error) {
	files, err := Files(folder, os.Getenv)
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == path })
	if err != nil || i < 0 {
		return File{}, inbox.Invalid("/file", "is none of the sessions that pi keeps of this folder")
	}
	return files[i], nil
}

// ReadFile takes what pi keeps of a session over into a transcript, without running a pi, and returns the session's id: of
// one that the hub has already, what was said since, and nothing of one that runs. Errors: *inbox.InvalidError.
func (b *Binding) ReadFile(ctx context.Context, folder, path string) (string, error) {
	f, err := fileOf(folder, path)
	if err != nil {
		return "", err
	}
	key := f.key()
	free, running := b.takeUp(key, path)
	if running == nil {
		defer free()
	}
	had, err := b.Transcripts.Get(ctx, Name, key)
	switch {
	case err != nil && !errors.Is(err, transcript.ErrUnknown):
		return "", err
	case running != nil && err != nil:
		return "", running
	case running != nil:
		return key, nil
	}
	messages, err := branch(path)
	if err != nil {
		return "", inbox.Invalid("/file", "cannot be read: %s", err)
	}
	now := b.Now()
	s := pirpc.New(0)
	if had.Rows > 0 {
		newest, err := b.newest(ctx, had)
		if err != nil {
			return "", err
		}
		s.Known(had.LastSeen, newest)
	}
	fx := s.History(messages, f.Changed)
	var rows []transcript.Row
	for _, r := range fx.Rows[max(0, len(fx.Rows)-transcript.MaxRows):] {
		stored, err := storedRow(r, had.Rows)
		if err != nil {
			return "", err
		}
		rows = append(rows, stored)
	}
	last := had.LastSeen
	if had.Rows == 0 {
		had = transcript.Session{
			Protocol: Name, ID: key, Title: f.Title, Folder: folder, File: path, Origin: transcript.Hub, OpenedAt: f.Changed, LastSeen: f.Changed, EndedAt: now,
			Ended: "read from the file that pi keeps of it",
		}
		if len(rows) > 0 {
			had.OpenedAt = rows[0].At
		}
	}
	if at := rows[max(0, len(rows)-1):]; len(at) > 0 && at[0].At.After(last) { // not now: something may be being said
		had.LastSeen = at[0].At
	}
	if err := b.Transcripts.Put(ctx, had); err != nil {
		return "", err
	}
	for part := range slices.Chunk(rows, rowsAtOne) {
		if err := b.Transcripts.PutRows(ctx, Name, key, part); err != nil {
			return "", err
		}
	}
	b.OnChange()
	return key, nil
}

// entry is a line of pi's own file. They are a tree: what was said last is at the end of the branch that counts.
type entry struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Parent  string          `json:"parentId"`
	Time    json.RawMessage `json:"timestamp"`
	Message json.RawMessage `json:"message"`
	Summary string          `json:"summary"`
	Custom  string          `json:"customType"`
	Content json.RawMessage `json:"content"`
	Display *bool           `json:"display"`
}

// branch are the messages of a file, as pi would say them, from the first to the last of the branch that counts. A line that
// cannot be read is passed over.
func branch(path string) ([]json.RawMessage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.New("it is not there, or not yours to read")
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > maxFile {
		return nil, errors.New("it is too large")
	}
	var all []entry
	at := map[string]int{}
	for r := pirpc.NewReader(bufio.NewReader(file), 0); ; {
		line, err := r.Read()
		var large *pirpc.TooLargeError
		if errors.As(err, &large) {
			continue
		}
		if err != nil {
			break
		}
		var e entry
		if json.Unmarshal(line, &e) != nil && e.ID == "" || e.Type == "session" {
			continue
		}
		if e.ID != "" {
			at[e.ID] = len(all)
		}
		all = append(all, e)
	}
	var messages []json.RawMessage
	for i, seen := len(all)-1, map[int]bool{}; i >= 0 && !seen[i]; {
		seen[i] = true
		if m := all[i].said(); m != nil {
			messages = append(messages, m)
		}
		parent, ok := at[all[i].Parent]
		switch {
		case all[i].ID == "": // the first versions keep a list
			i--
		case ok:
			i = parent
		default:
			i = -1
		}
	}
	slices.Reverse(messages)
	return messages, nil
}

// said is an entry as a message; nil for one that is none.
func (e entry) said() json.RawMessage {
	made := map[string]any{}
	switch e.Type {
	case "message":
		return e.Message
	case "compaction":
		made["role"], made["summary"] = "compactionSummary", e.Summary
	case "branch_summary":
		made["role"], made["summary"] = "branchSummary", e.Summary
	case "custom_message":
		made["role"], made["customType"], made["content"], made["display"] = "custom", cmp.Or(e.Custom, "extension"), e.Content, e.Display == nil || *e.Display
	default:
		return nil
	}
	if at, ok := wire.String(e.Time); ok {
		if t, err := time.Parse(time.RFC3339, at); err == nil {
			made["timestamp"] = t.UnixMilli()
		}
	}
	raw, err := wire.Marshal(made)
	if err != nil { // its content is not JSON: it was, a moment ago
		return nil
	}
	return raw
}
