package objects

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const observed = `
apiVersion: v1
kind: Thing
metadata: {generation: 2}
status:
  addresses: [{value: 10.245.0.1}]
  conditions:
  - {type: Accepted, status: "True", observedGeneration: 2}
  - {type: Programmed, status: "True", observedGeneration: 1}
  - {type: Ready, status: "False"}
`

func TestGoals(t *testing.T) {
	text, err := yaml.YAMLToJSON([]byte(observed))
	if err != nil {
		t.Fatal(err)
	}
	// Numbers are integers, as in the API server's answers.
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"condition=Accepted": true, "condition=Accepted=False": false, "condition=Programmed": false,
		"condition=Ready=False": true, "condition=Ready": false, "condition=Other": false, "create": true, "delete": false,
		"jsonpath={.status.addresses[0].value}=10.245.0.1": true, "jsonpath={.status.addresses[1].value}=10.245.0.1": false,
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}=False`: true,
	} {
		wanted, err := parseGoal(text)
		if err != nil {
			t.Fatal(err)
		}
		if met, err := wanted.met(object); met != want || err != nil {
			t.Errorf("%s: %v, %v", text, met, err)
		}
	}
	for _, text := range []string{"", "condition", "condition=", "jsonpath={.a}", "other=x"} {
		if _, err := parseGoal(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestReferences(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      []reference
	}{
		{[]string{"pod/a", "service/b"}, []reference{{"pod", "a"}, {"service", "b"}}},
		{[]string{"pods", "a", "b"}, []reference{{"pods", "a"}, {"pods", "b"}}},
		{[]string{"pods"}, []reference{{"pods", ""}}},
		{nil, nil},
		{[]string{"pod/a", "b"}, nil},
		{[]string{"pod/"}, nil},
	} {
		got, err := references(c.arguments)
		if (err != nil) != (c.want == nil) || len(got) != len(c.want) {
			t.Errorf("%q: %v, %v", c.arguments, got, err)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%q: %v", c.arguments, got)
			}
		}
	}
}
