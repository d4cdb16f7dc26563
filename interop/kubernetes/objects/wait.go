// The command `wait`.

package objects

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/jsonpath"

	"weir.test/interop/kubernetes/cluster"
)

const waitDefault = 30 * time.Second

// goal is what an object is waited for.
type goal struct {
	text string
	// met returns whether an object, nil if it does not exist, meets the goal.
	met func(*unstructured.Unstructured) (bool, error)
}

// Wait is the command `wait`.
func Wait(arguments []string) error {
	flags, common := newFlags("wait", "--kubeconfig FILE --for GOAL KIND/NAME... | KIND NAME... | KIND --all")
	text := flags.String("for", "", "`GOAL`: condition=TYPE, condition=TYPE=STATUS, jsonpath={PATH}=VALUE, create or delete")
	limit := flags.Duration("timeout", waitDefault, "fail after this `DURATION`")
	all := flags.Bool("all", false, "wait for all objects of the kind, of which at least one must exist")
	everywhere := flags.Bool("all-namespaces", false, "with --all: in all namespaces")
	others, err := interspersed(flags, arguments)
	if err != nil {
		return err
	}
	wanted, err := parseGoal(*text)
	if err != nil {
		return err
	}
	objects, err := references(others)
	if err != nil {
		return err
	}
	if (objects[0].name == "") != *all {
		return fmt.Errorf("give either names or --all")
	}
	connected, err := common.connect()
	if err != nil {
		return err
	}
	if *everywhere {
		connected.namespace = v1.NamespaceAll
	}
	interrupted, stop := cluster.Interrupted()
	defer stop()
	limited, cancel := context.WithTimeout(interrupted, *limit)
	defer cancel()
	for _, object := range objects {
		if err := connected.waitFor(limited, object, wanted); err != nil {
			return err
		}
	}
	return nil
}

func parseGoal(text string) (*goal, error) {
	method, rest, _ := strings.Cut(text, "=")
	switch method {
	case "create":
		return &goal{text, func(object *unstructured.Unstructured) (bool, error) { return object != nil, nil }}, nil
	case "delete":
		return &goal{text, func(object *unstructured.Unstructured) (bool, error) { return object == nil, nil }}, nil
	case "condition":
		kind, status, found := strings.Cut(rest, "=")
		if !found {
			status = "True"
		}
		if kind == "" {
			return nil, fmt.Errorf("--for %s: give condition=TYPE", text)
		}
		return &goal{text, func(object *unstructured.Unstructured) (bool, error) {
			return object != nil && hasCondition(object, kind, status), nil
		}}, nil
	case "jsonpath":
		return pathGoal(text, rest)
	}
	return nil, fmt.Errorf("unknown --for %q; use condition=TYPE, jsonpath={PATH}=VALUE, create or delete", text)
}

func pathGoal(text, rest string) (*goal, error) {
	end := strings.LastIndex(rest, "}=")
	if end < 0 {
		return nil, fmt.Errorf("--for %s: give jsonpath={PATH}=VALUE", text)
	}
	value := rest[end+2:]
	path := jsonpath.New("for").AllowMissingKeys(true)
	if err := path.Parse(rest[:end+1]); err != nil {
		return nil, fmt.Errorf("--for %s: %w", text, err)
	}
	return &goal{text, func(object *unstructured.Unstructured) (bool, error) {
		if object == nil {
			return false, nil
		}
		var found strings.Builder
		if err := path.Execute(&found, object.Object); err != nil {
			// An index that does not exist yet.
			return false, nil
		}
		return found.String() == value, nil
	}}, nil
}

// waitFor waits until an object, or each object of a kind, meets the goal.
func (c *client) waitFor(ctx context.Context, object reference, wanted *goal) error {
	resource, err := c.named(object.kind)
	if err != nil {
		return err
	}
	unmet := ""
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		left, err := resource.unmet(ctx, object, wanted)
		if err == nil {
			unmet = left
		}
		return left == "" && err == nil, err
	})
	if wait.Interrupted(err) && unmet != "" {
		return fmt.Errorf("%s does not meet --for %s in time", unmet, wanted.text)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", strings.TrimSuffix(object.kind+"/"+object.name, "/"), wanted.text)
	return nil
}

// unmet returns the first object that does not meet the goal, or nothing.
func (r *resource) unmet(ctx context.Context, object reference, wanted *goal) (string, error) {
	if object.name == "" {
		list, err := r.List(ctx, v1.ListOptions{})
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if met, err := wanted.met(&list.Items[i]); !met || err != nil {
				return object.kind + "/" + list.Items[i].GetName(), err
			}
		}
		if met, err := wanted.met(nil); len(list.Items) == 0 && !met {
			return "no " + object.kind, err
		}
		if len(list.Items) > 0 && wanted.text == "delete" {
			return object.kind + "/" + list.Items[0].GetName(), nil
		}
		return "", nil
	}
	found, err := r.Get(ctx, object.name, v1.GetOptions{})
	if errors.IsNotFound(err) {
		found, err = nil, nil
	}
	if err != nil {
		return "", err
	}
	if met, err := wanted.met(found); !met || err != nil {
		return object.kind + "/" + object.name, err
	}
	return "", nil
}

// hasCondition reports whether the status has the condition, for the current generation of the object.
func hasCondition(object *unstructured.Unstructured, kind, status string) bool {
	if seen, found, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); found && seen < object.GetGeneration() {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, ok := condition.(map[string]any)
		if !ok || fields["type"] != kind || fields["status"] != status {
			continue
		}
		seen, found, _ := unstructured.NestedInt64(fields, "observedGeneration")
		return !found || seen >= object.GetGeneration()
	}
	return false
}
