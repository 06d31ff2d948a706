package mapv1

import (
	"context"
	"errors"

	"deskbell/backend/mapnet"
	"deskbell/backend/workspace"
)

// maxReading is how many requests of all connections read the disk at a time.
const maxReading = 4

// place is the file or folder that a request names: whose workspace, where in it, and the member that said so.
type place struct{ agent, path, member string }

// files is a method that reads an agent's workspace.
func files[P any](needs string, where func(P) place, do func(ctx context.Context, root *workspace.Root, p P) (map[string]any, error)) method {
	return method{own: func(c *conn, ctx context.Context, q call) error {
		p, err := decode[P](q.params)
		if err != nil {
			return err
		}
		at := where(p)
		if _, err := workspace.Clean(at.path); err != nil {
			return workspaceError(err, at)
		}
		return c.aside(ctx, q, func(ctx context.Context, s *mapnet.Session) error {
			ctx, cancel := context.WithTimeout(ctx, workspace.Time)
			defer cancel()
			select {
			case c.b.reading <- struct{}{}:
				defer func() { <-c.b.reading }()
			case <-ctx.Done():
				return workspaceError(ctx.Err(), at)
			}
			dir, err := c.workspaceOf(ctx, s, needs, at.agent)
			if err != nil {
				return err
			}
			root, err := workspace.Open(dir)
			if err != nil {
				return &mapnet.Error{Code: mapnet.CodeNoWorkspace, Message: "The workspace's folder cannot be opened"}
			}
			defer root.Close() // it was only read
			out, err := do(ctx, root, p)
			if err != nil {
				return workspaceError(err, at)
			}
			c.ws.Send(result(q.id, out))
			return nil
		})
	}}
}

// workspaceOf finds the folder that the operator granted for an agent, if the caller speaks for it.
func (c *conn) workspaceOf(ctx context.Context, s *mapnet.Session, needs, agent string) (dir string, err error) {
	err = c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
		if err := entitled(tx, s, needs); err != nil {
			return err
		}
		principal, mine, err := tx.Whose(s, agent)
		if err != nil {
			return err
		}
		ok := false
		if dir, ok = c.b.Workspace(agent, principal); !ok {
			return &mapnet.Error{Code: mapnet.CodeNoWorkspace, Message: "The operator granted no workspace for this agent"}
		}
		if !mine {
			return &mapnet.Error{Code: mapnet.CodeWorkspaceDenied, Message: "Workspace permission denied: the agent is somebody else's"}
		}
		return nil
	})
	return dir, err
}

// workspaceError says what is wrong with the file or folder that a request names.
func workspaceError(err error, at place) error {
	code := mapnet.CodeWorkspaceDenied
	var bad *workspace.PathError
	var said *mapnet.Error
	switch {
	case errors.As(err, &said):
		return said
	case errors.As(err, &bad):
		return &mapnet.Error{Code: mapnet.CodeWorkspacePath, Message: at.member + ": " + bad.Error(), Details: map[string]any{"pointer": "/params/" + at.member, "reason": bad.Error()}}
	case errors.Is(err, workspace.ErrOutside), errors.Is(err, workspace.ErrNotFile), errors.Is(err, workspace.ErrNotFolder):
		code = mapnet.CodeWorkspacePath
	case errors.Is(err, workspace.ErrNotFound):
		code = mapnet.CodeWorkspaceNotFound
	case errors.Is(err, workspace.ErrTooLarge):
		code = mapnet.CodeQuota
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &mapnet.Error{Code: mapnet.CodeExhausted, Message: "Reading the workspace takes too long at present"}
	}
	return &mapnet.Error{Code: code, Message: at.member + ": " + err.Error(), Details: map[string]any{"pointer": "/params/" + at.member, "reason": err.Error()}}
}

type (
	searchFiles struct {
		Agent string `json:"agentId"`
		Query string `json:"query"`
		Dir   string `json:"cwd"`
		Limit int    `json:"limit"`
	}
	listFiles struct {
		Agent string `json:"agentId"`
		Dir   string `json:"directory"`
	}
	readFile struct {
		Agent string `json:"agentId"`
		Path  string `json:"path"`
		Range *struct {
			Start int `json:"start"`
			End   int `json:"end"`
		} `json:"lineRange"`
	}
)

// defaultFound is how many files a search answers that names no limit.
const defaultFound = 50

func searchMethod() method {
	return files("workspace.canSearch", func(p searchFiles) place { return place{p.Agent, p.Dir, "cwd"} },
		func(ctx context.Context, root *workspace.Root, p searchFiles) (map[string]any, error) {
			if p.Limit < 0 || len(p.Query) > 1000 {
				return nil, &mapnet.Error{Code: mapnet.CodeInvalidParams, Message: "params/query: must be at most 1000 bytes, and the limit at least 1"}
			}
			if p.Limit == 0 {
				p.Limit = defaultFound
			}
			found, more, err := root.Search(ctx, p.Dir, p.Query, p.Limit)
			return fileResults(found, more), err
		})
}

func listMethod() method {
	return files("workspace.canList", func(p listFiles) place { return place{p.Agent, p.Dir, "directory"} },
		func(ctx context.Context, root *workspace.Root, p listFiles) (map[string]any, error) {
			found, more, err := root.List(ctx, p.Dir)
			return fileResults(found, more), err
		})
}

func readMethod() method {
	return files("workspace.canRead", func(p readFile) place { return place{p.Agent, p.Path, "path"} },
		func(ctx context.Context, root *workspace.Root, p readFile) (map[string]any, error) {
			var lines *workspace.Lines
			if p.Range != nil {
				if p.Range.Start < 1 || p.Range.End < p.Range.Start {
					return nil, &mapnet.Error{Code: mapnet.CodeInvalidParams, Message: "params/lineRange: must begin at 1 or later and not end before it begins"}
				}
				lines = &workspace.Lines{First: p.Range.Start, Last: p.Range.End}
			}
			text, err := root.Read(ctx, p.Path, lines)
			out := map[string]any{"text": text.Text, "mime": text.Type, "size": text.Size}
			if text.Binary {
				out["_meta"] = map[string]any{"binary": true}
			}
			return out, err
		})
}

func fileResults(found []workspace.File, more bool) map[string]any {
	list := []map[string]any{}
	for _, f := range found {
		x := map[string]any{"path": f.Path, "isDirectory": f.Folder}
		if !f.Folder {
			x["size"], x["mime"] = f.Size, f.Type
		}
		list = append(list, x)
	}
	out := map[string]any{"files": list}
	if more {
		out["_meta"] = map[string]any{"truncated": true}
	}
	return out
}
