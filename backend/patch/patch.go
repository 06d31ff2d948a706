// Package patch reads what Codex and its like hand to apply_patch: changes of files as a text. It does no I/O.
package patch

import (
	"regexp"
	"strings"
)

const (
	// Tool is the one tool that reads a patch. To any other the same text is something else: to a shell, a script.
	Tool = "apply_patch"
	// Alias is another name of it in a shell.
	Alias = "applypatch"
	// Begins is how a patch begins.
	Begins = "*** Begin Patch"
)

const (
	ends  = "*** End Patch"
	moves = "*** Move to: "
)

// Change is what becomes of a file besides its lines.
type Change int

// What may become of a file.
const (
	Update Change = iota
	Add
	Delete
)

var heads = []struct {
	head   string
	change Change
}{{"*** Update File: ", Update}, {"*** Add File: ", Add}, {"*** Delete File: ", Delete}}

// File is what a patch says of one file.
type File struct {
	Path   string // "" is what stands before the first file
	Change Change
	To     string // where an Update moves it; "": nowhere
	Head   string // the line that names it
	Lines  []Line
}

// Line is one line below a file's head. Op is "+", "-" or " ", which is also where the change is, a move, and whatever is
// not known: Text is the whole of it then.
type Line struct{ Op, Text string }

var heredoc = regexp.MustCompile(`^<<-?\s*['"]?\w+['"]?[ \t\r]*\n`)

// In is the patch in a text that is handed to the tool: by itself, or in the here-document that models write around it.
func In(text string) (string, bool) {
	text = strings.TrimSpace(text)
	text = strings.TrimSpace(text[len(heredoc.FindString(text)):])
	return text, strings.HasPrefix(text, Begins)
}

// Files reads a patch, file by file. It takes any text: what says nothing of a file is told as it is.
func Files(text string) []File {
	var files []File
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if trimmed := strings.TrimSpace(line); !context(files, line) {
			if f, ok := head(trimmed); ok {
				f.Head = line
				files = append(files, f)
				continue
			}
			if trimmed == Begins || trimmed == ends {
				continue
			}
		}
		if len(files) == 0 {
			files = append(files, File{})
		}
		files[len(files)-1].say(line)
	}
	return files
}

// context says whether a line is one of the file that an Update changes, whatever it says. Anywhere else white space before a
// head does not count.
func context(files []File, line string) bool {
	return len(files) > 0 && files[len(files)-1].Change == Update && files[len(files)-1].Path != "" && strings.HasPrefix(line, " ")
}

func head(line string) (File, bool) {
	for _, h := range heads {
		if path, ok := named(line, h.head); ok {
			return File{Path: path, Change: h.change}, true
		}
	}
	return File{}, false
}

// named is the file that a line names, which is no file where the line names none.
func named(line, head string) (string, bool) {
	path, ok := strings.CutPrefix(line, head)
	path = strings.TrimSpace(path)
	return path, ok && path != ""
}

func (f *File) say(line string) {
	if to, ok := named(strings.TrimSpace(line), moves); ok && f.Change == Update && f.To == "" && len(f.Lines) == 0 {
		f.To = to
	}
	if line != "" && strings.Contains("+- ", line[:1]) {
		f.Lines = append(f.Lines, Line{line[:1], line[1:]})
		return
	}
	f.Lines = append(f.Lines, Line{" ", line})
	if to, ok := named(line, moves); ok && f.Change == Update && f.To == "" {
		f.To = to // further down: whoever reads it may take it or not
	}
}
