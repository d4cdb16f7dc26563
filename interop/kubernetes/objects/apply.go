// The command `apply`. It applies objects as `kubectl apply --server-side --force-conflicts` does. It also waits until
// CustomResourceDefinitions among them are established and their resources are discoverable.

package objects

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"weir.test/interop/kubernetes/cluster"
)

const (
	// establishedWait is how long a CustomResourceDefinition may take until it is established, discoveredWait how long
	// its resources may take until the API server lists them.
	establishedWait = 30 * time.Second
	discoveredWait  = 30 * time.Second
	pollInterval    = 50 * time.Millisecond
)

const (
	definitionKind = "CustomResourceDefinition"
	fieldManager   = "weir-kubernetes"
)

type applier struct {
	*client
	dryRun bool
	// undiscovered are the resources of applied definitions that the API server may not list yet.
	undiscovered []schema.GroupVersionResource
}

// Apply is the command `apply`.
func Apply(arguments []string) error {
	flags, common := newFlags("apply", "--kubeconfig FILE [-f FILE|FOLDER|-]... [FILE|FOLDER]...")
	var files paths
	flags.Var(&files, "f",
		"apply the objects of a YAML or JSON `FILE`, of the files of a folder, or of the standard input (-); repeatable")
	flags.Bool("server-side", true, "always true; accepted so that the command reads like kubectl's")
	dryRun := flags.String("dry-run", "none", "`MODE` server: let the API server check the objects, and write nothing")
	others, err := interspersed(flags, arguments)
	if err != nil {
		return err
	}
	if *dryRun != "none" && *dryRun != "server" {
		return fmt.Errorf("unknown --dry-run %s; use none or server", *dryRun)
	}
	objects, err := read(append(files, others...))
	if err != nil {
		return err
	}
	connected, err := common.connect()
	if err != nil {
		return err
	}
	interrupted, stop := cluster.Interrupted()
	defer stop()
	a := &applier{client: connected, dryRun: *dryRun == "server"}
	for _, object := range objects {
		if err := a.object(interrupted, object.Unstructured); err != nil {
			return fmt.Errorf("%s: %s %s: %w", object.file, object.GetKind(), object.GetName(), err)
		}
	}
	return a.waitDiscovered(interrupted)
}

func (a *applier) object(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	if kind.Kind != definitionKind {
		// Its kind may be one of the definitions'.
		if err := a.waitDiscovered(ctx); err != nil {
			return err
		}
	}
	resource, err := a.ofKind(kind, object.GetNamespace())
	if err != nil {
		return err
	}
	content, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	force := true
	// Strict: unknown fields are errors, as in kubectl.
	options := v1.PatchOptions{FieldManager: fieldManager, Force: &force, FieldValidation: v1.FieldValidationStrict}
	note := ""
	if a.dryRun {
		options.DryRun, note = []string{v1.DryRunAll}, " (server dry run)"
	}
	if _, err := resource.Patch(ctx, object.GetName(), types.ApplyPatchType, content, options); err != nil {
		return err
	}
	fmt.Printf("applied %s %s%s\n", object.GetKind(), object.GetName(), note)
	if kind.Kind != definitionKind || a.dryRun {
		return nil
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, establishedWait, true, func(ctx context.Context) (bool, error) {
		current, err := resource.Get(ctx, object.GetName(), v1.GetOptions{})
		if err != nil {
			return false, err
		}
		return hasCondition(current, "Established", "True"), nil
	})
	if err != nil {
		return fmt.Errorf("it is not established: %w", err)
	}
	a.undiscovered = append(a.undiscovered, resources(object)...)
	return nil
}

// waitDiscovered waits until the API server lists the resources of the applied definitions. Its list is updated some
// time after a definition is established.
func (a *applier) waitDiscovered(ctx context.Context) error {
	if len(a.undiscovered) == 0 {
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, discoveredWait, true, func(context.Context) (bool, error) {
		// After an error, the list contains the groups that could be read.
		_, lists, _ := a.discovered.ServerGroupsAndResources()
		a.undiscovered = slices.DeleteFunc(a.undiscovered, func(r schema.GroupVersionResource) bool { return listed(lists, r) })
		return len(a.undiscovered) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not list %v: %w", a.undiscovered, err)
	}
	a.mapper.Reset()
	return nil
}

func listed(lists []*v1.APIResourceList, resource schema.GroupVersionResource) bool {
	return slices.ContainsFunc(lists, func(list *v1.APIResourceList) bool {
		return list.GroupVersion == resource.GroupVersion().String() &&
			slices.ContainsFunc(list.APIResources, func(r v1.APIResource) bool { return r.Name == resource.Resource })
	})
}

// resources returns the resource of every served version of a definition.
func resources(definition *unstructured.Unstructured) []schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var found []schema.GroupVersionResource
	for _, version := range versions {
		if fields, ok := version.(map[string]any); ok && fields["served"] == true {
			name, _, _ := unstructured.NestedString(fields, "name")
			found = append(found, schema.GroupVersionResource{Group: group, Version: name, Resource: plural})
		}
	}
	return found
}
