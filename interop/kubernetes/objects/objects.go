// Package objects has the commands that read and write objects of any kind: `apply`, `delete`, `get` and `wait`. They
// are as much of kubectl as the tests need.
package objects

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"weir.test/interop/kubernetes/cluster"
)

// client reads and writes objects of any kind.
type client struct {
	dynamic    dynamic.Interface
	discovered discovery.DiscoveryInterface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
	// short also knows the short names of resources.
	short meta.RESTMapper
	// namespace is that of objects without one.
	namespace string
}

// common are the options of all commands.
type common struct {
	kubeconfig, namespace string
}

func newFlags(command, usage string) (*flag.FlagSet, *common) {
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	c := &common{}
	flags.StringVar(&c.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"),
		"`FILE` with the API server's address and credentials; $KUBECONFIG by default")
	flags.StringVar(&c.namespace, "namespace", "default", "`NAMESPACE` of objects that name none")
	flags.StringVar(&c.namespace, "n", "default", "short for --namespace `NAMESPACE`")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: weir-kubernetes %s %s\n\n", command, usage)
		flags.PrintDefaults()
	}
	return flags, c
}

func (c *common) connect() (*client, error) {
	config, err := cluster.Config(c.kubeconfig)
	if err != nil {
		return nil, err
	}
	access, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))
	return &client{
		dynamic: access, discovered: discovered, mapper: mapper, namespace: c.namespace,
		short: restmapper.NewShortcutExpander(mapper, discovered, nil),
	}, nil
}

// resource is a kind of objects, and the access to those of one namespace.
type resource struct {
	dynamic.ResourceInterface
	mapping *meta.RESTMapping
}

// ofKind returns the resource of a kind. Objects without a namespace belong to the default one.
func (c *client) ofKind(kind schema.GroupVersionKind, namespace string) (*resource, error) {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return c.access(mapping, namespace), nil
}

func (c *client) access(mapping *meta.RESTMapping, namespace string) *resource {
	all := c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return &resource{all, mapping}
	}
	if namespace == "" {
		namespace = c.namespace
	}
	return &resource{all.Namespace(namespace), mapping}
}

// named returns the resource with a name as it is typed: "deployment", "deploy", "Gateway", or
// "gateways.gateway.networking.k8s.io".
func (c *client) named(name string) (*resource, error) {
	full, group := schema.ParseResourceArg(strings.ToLower(name))
	var kind schema.GroupVersionKind
	var err error
	if full != nil {
		kind, err = c.short.KindFor(*full)
	}
	if full == nil || err != nil {
		kind, err = c.short.KindFor(group.WithVersion(""))
	}
	if err != nil {
		return nil, fmt.Errorf("kind %q: %w", name, err)
	}
	return c.ofKind(kind, "")
}

// reference is an object as it is typed: KIND/NAME, or KIND NAME.
type reference struct{ kind, name string }

// references parses the arguments KIND/NAME..., KIND NAME..., or KIND for all objects of a kind, whose name is empty.
func references(arguments []string) ([]reference, error) {
	if len(arguments) == 0 {
		return nil, fmt.Errorf("no object; give KIND/NAME")
	}
	var found []reference
	if strings.Contains(arguments[0], "/") {
		for _, argument := range arguments {
			kind, name, complete := strings.Cut(argument, "/")
			if !complete || kind == "" || name == "" {
				return nil, fmt.Errorf("%q is not KIND/NAME", argument)
			}
			found = append(found, reference{kind, name})
		}
		return found, nil
	}
	if len(arguments) == 1 {
		return []reference{{arguments[0], ""}}, nil
	}
	for _, name := range arguments[1:] {
		found = append(found, reference{arguments[0], name})
	}
	return found, nil
}

// interspersed parses options before, between and after other arguments, and returns the others.
func interspersed(flags *flag.FlagSet, arguments []string) ([]string, error) {
	var others []string
	for {
		if err := flags.Parse(arguments); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return others, nil
		}
		others = append(others, flags.Arg(0))
		arguments = flags.Args()[1:]
	}
}
