package nodes

import (
	"slices"
	"testing"
)

func TestTheLastMatchingImageWins(t *testing.T) {
	var known images
	for _, value := range []string{"echo=/a", "echo-basic=/b serve", "other=/c"} {
		if err := known.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	command, err := known.command("registry.test/echo-basic:v1")
	if err != nil || !slices.Equal(command, []string{"/b", "serve"}) {
		t.Errorf("%q, %v", command, err)
	}
	if command, err := known.command("nginx"); err == nil {
		t.Errorf("no error, but %q", command)
	}
	for _, value := range []string{"echo", "=/a", "echo="} {
		if err := known.Set(value); err == nil {
			t.Errorf("%q was accepted", value)
		}
	}
}
