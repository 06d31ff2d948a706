package desk

import (
	"encoding/json"
	"testing"

	"deskbell/backend/pirpc"
	"deskbell/backend/transcript"
)

// What the page tells a session is a prompt, one of pi's commands, or nothing at all.
func TestWhatIsTold(t *testing.T) {
	c, err := piTold{Text: "look", Steer: true, Images: []image{{"image/png", "aGk="}}}.command(nil)
	if err != nil || c.Check() != nil || c.Params["streamingBehavior"] != "steer" || len(c.Params["images"].([]pirpc.Image)) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := (piTold{Type: "set_model", Provider: "a", Model: "b"}).command(nil); err != nil || c.Check() != nil {
		t.Errorf("%+v, %v", c, err)
	}
	for _, told := range []piTold{{Type: "bash"}, {Type: "switch_session"}, {Type: "nope"}, {Type: "get_fork_messages"}, {Text: "/login"}, {Text: "/fork"}} {
		if c, err := told.command(nil); err == nil {
			t.Errorf("%+v becomes %+v", told, c)
		}
	}
}

// What pi says is shown and obeyed by nothing: escape sequences, HTML, pictures that are none.
func TestViewPiRow(t *testing.T) {
	row := pirpc.Row{Kind: pirpc.AssistantRow, Blocks: []pirpc.Block{
		{Kind: pirpc.TextBlock, Text: pirpc.Text("**a** <script>x</script>\x1b]0;t\x07")},
		{Kind: pirpc.ThinkingBlock, Text: pirpc.Text("\x1b[31mr\x1b[0m")},
		{Kind: pirpc.ImageBlock, Mime: "image/svg+xml", Data: "aGk="},
	}}
	body, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	v := viewPiRow(transcript.Row{N: 3, Body: body})
	if v.N != 3 || v.Blocks[0].HTML != "<p><strong>a</strong> &lt;script&gt;x&lt;/script&gt;</p>\n" {
		t.Errorf("%q", v.Blocks[0].HTML)
	}
	if len(v.Blocks[1].Text) != 1 || v.Blocks[1].Text[0].Style != "red" || v.Blocks[2].Data != "" {
		t.Errorf("%+v", v.Blocks)
	}
}
