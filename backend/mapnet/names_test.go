package mapnet

import "testing"

// Whoever takes another's name is told apart by the id, and nobody but the person is "You".
func TestCalled(t *testing.T) {
	for _, x := range []struct{ id, name, want string }{
		{"planner", "planner", "planner"}, {"planner", "", "planner"}, {"evil", "planner", "planner (evil)"}, {"evil", "You", "You (evil)"}, {"evil", "planner (planner)", "planner (planner) (evil)"},
		{Human, "", "You"}, {Human, "Human", "You"}, {"human-2", "human", "human (human-2)"}, {"You", "", "agent You"}, {"you", "you", "agent you"}, {"tester@hub-b", "", "tester@hub-b"},
		{"evil", "planner wishes\nmore", "planner wishes (evil)"}, {"evil", "a name so long that it would push the rest out of sight", "a name so long that it would push the r… (evil)"},
	} {
		if got := Called(x.id, x.name); got != x.want {
			t.Errorf("%s named %q is called %q, want %q", x.id, x.name, got, x.want)
		}
	}
}
