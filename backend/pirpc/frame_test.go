package pirpc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func records(t *testing.T, r io.Reader, most int64) (out []string, large int) {
	t.Helper()
	reader := NewReader(r, most)
	for {
		line, err := reader.Read()
		var tooLarge *TooLargeError
		switch {
		case errors.As(err, &tooLarge):
			large++
		case err == io.EOF:
			return out, large
		case err != nil:
			t.Fatal(err)
		default:
			out = append(out, string(line))
		}
	}
}

func TestRecordsEndAtLFAlone(t *testing.T) {
	in := "{\"a\":\"x\u2028y\u2029z\u0085\"}\r\n\n  \n{\"b\":\"\f😀\"}\n{\"last\":1}"
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in))} {
		got, _ := records(t, r, 0)
		if want := []string{"{\"a\":\"x\u2028y\u2029z\u0085\"}", "{\"b\":\"\f😀\"}", `{"last":1}`}; strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestALargeRecordIsLeftOutAndTheRestIsRead(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	got, large := records(t, strings.NewReader("1\n"+big+"\n2\n"+big), 700_000)
	if strings.Join(got, "|") != "1|2" || large != 2 {
		t.Errorf("%q, %d too large", got, large)
	}
	exact := strings.Repeat("y", 1000)
	if got, large := records(t, strings.NewReader(exact+"\n"+exact+"z\n"), 1000); len(got) != 1 || large != 1 {
		t.Errorf("at the bound: %d records, %d too large", len(got), large)
	}
	if got, _ := records(t, strings.NewReader(big+"\n"), 0); len(got) != 1 || len(got[0]) != 1<<20 {
		t.Errorf("a megabyte is no more than usual")
	}
}

// Whatever comes, no record holds an LF, and none is lost.
func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"a\":1}\r\n\n{\"b\":\"\xe2\x80\xa8\"}"), uint16(100))
	f.Add([]byte("\xff\xfe\n\x00\n"), uint16(2))
	f.Fuzz(func(t *testing.T, in []byte, most uint16) {
		r := NewReader(iotest.HalfReader(bytes.NewReader(in)), int64(most)+1)
		kept := 0
		for {
			line, err := r.Read()
			var large *TooLargeError
			if errors.As(err, &large) {
				kept += int(large.Size)
				continue
			}
			if err != nil {
				break
			}
			if bytes.IndexByte(line, '\n') >= 0 || int64(len(line)) > int64(most)+1 {
				t.Fatalf("%q", line)
			}
			kept += len(line)
		}
		if kept > len(in) {
			t.Fatalf("%d bytes of %d", kept, len(in))
		}
	})
}
