// The commands `get` and `delete`.

package objects

import (
	"context"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"weir.test/interop/kubernetes/cluster"
)

// Get is the command `get`. It prints YAML.
func Get(arguments []string) error {
	flags, common := newFlags("get", "--kubeconfig FILE KIND/NAME... | KIND [NAME...]")
	everywhere := flags.Bool("all-namespaces", false, "the objects of all namespaces")
	others, err := interspersed(flags, arguments)
	if err != nil {
		return err
	}
	wanted, err := references(others)
	if err != nil {
		return err
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
	for _, object := range wanted {
		resource, err := connected.named(object.kind)
		if err != nil {
			return err
		}
		if err := resource.print(interrupted, object.name); err != nil {
			return fmt.Errorf("%s/%s: %w", object.kind, object.name, err)
		}
	}
	return nil
}

// print prints an object, or all objects if the name is empty.
func (r *resource) print(ctx context.Context, name string) error {
	var found []unstructured.Unstructured
	if name == "" {
		list, err := r.List(ctx, v1.ListOptions{})
		if err != nil {
			return err
		}
		found = list.Items
	} else {
		object, err := r.Get(ctx, name, v1.GetOptions{})
		if err != nil {
			return err
		}
		found = append(found, *object)
	}
	for i := range found {
		found[i].SetManagedFields(nil)
		text, err := yaml.Marshal(found[i].Object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(os.Stdout, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// Delete is the command `delete`.
func Delete(arguments []string) error {
	flags, common := newFlags("delete", "--kubeconfig FILE [-f FILE|FOLDER|-]... | KIND/NAME... | KIND NAME...")
	var files paths
	flags.Var(&files, "f", "delete the objects of a YAML or JSON `FILE`, or of the files of a folder, last first; repeatable")
	others, err := interspersed(flags, arguments)
	if err != nil {
		return err
	}
	connected, err := common.connect()
	if err != nil {
		return err
	}
	interrupted, stop := cluster.Interrupted()
	defer stop()
	if len(files) > 0 {
		objects, err := read(files)
		if err != nil {
			return err
		}
		for _, object := range slices.Backward(objects) {
			resource, err := connected.ofKind(object.GroupVersionKind(), object.GetNamespace())
			if err != nil {
				return err
			}
			if err := resource.delete(interrupted, object.GetName()); err != nil {
				return err
			}
		}
		return nil
	}
	wanted, err := references(others)
	if err != nil {
		return err
	}
	for _, object := range wanted {
		if object.name == "" {
			return fmt.Errorf("give the names of the objects")
		}
		resource, err := connected.named(object.kind)
		if err != nil {
			return err
		}
		if err := resource.delete(interrupted, object.name); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes an object, and does not wait until it is gone. A missing object is not an error.
func (r *resource) delete(ctx context.Context, name string) error {
	background := v1.DeletePropagationBackground
	err := r.Delete(ctx, name, v1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !errors.IsNotFound(err) {
		return fmt.Errorf("%s %s: %w", r.mapping.GroupVersionKind.Kind, name, err)
	}
	fmt.Printf("deleted %s %s\n", r.mapping.GroupVersionKind.Kind, name)
	return nil
}
