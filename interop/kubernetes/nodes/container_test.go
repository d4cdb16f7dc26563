package nodes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCommands(t *testing.T) {
	image := []string{"/bin/weir", "run"}
	for _, c := range []struct{ command, arguments, want []string }{
		{nil, nil, []string{"", "run"}},
		{nil, []string{"--x"}, []string{"", "run", "--x"}},
		{[]string{"/usr/local/bin/weir", "check"}, []string{"--x"}, []string{"", "check", "--x"}},
		{[]string{"sh", "-c"}, []string{"true"}, []string{"sh", "-c", "true"}},
	} {
		if got := command(image, c.command, c.arguments); !slices.Equal(got, c.want) {
			t.Errorf("%q, %q: %q", c.command, c.arguments, got)
		}
	}
}

func TestTheContainersUserGoesBeforeThePods(t *testing.T) {
	one, two := int64(1), int64(2)
	pod := &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: &one, RunAsGroup: &one}}
	spec := &corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsUser: &two}}
	if got := user(pod, spec); got != "2:1" {
		t.Error(got)
	}
	if got := user(&corev1.PodSpec{}, &corev1.Container{}); got != "0:0" {
		t.Error(got)
	}
}
