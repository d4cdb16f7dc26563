// The environment variables of a container.

package nodes

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"weir.test/interop/kubernetes/cluster"
)

// environment resolves the container's variables. $(NAME) in a value refers to an earlier variable.
func environment(ctx context.Context, p *pod, spec *corev1.Container) (map[string]string, error) {
	env := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": "/", "HOSTNAME": p.hostname(),
		// Clients in a Pod find the API server by these.
		"KUBERNETES_SERVICE_HOST":       cluster.APIServer.String(),
		"KUBERNETES_SERVICE_PORT":       "443",
		"KUBERNETES_SERVICE_PORT_HTTPS": "443",
	}
	for _, source := range spec.EnvFrom {
		content, err := allOf(ctx, p, &source)
		if err != nil {
			return nil, fmt.Errorf("container %s: envFrom: %w", spec.Name, err)
		}
		for key, text := range content {
			env[source.Prefix+key] = string(text)
		}
	}
	for _, variable := range spec.Env {
		value := expansion.Expand(variable.Value, expansion.MappingFuncFor(env))
		if variable.ValueFrom != nil {
			var err error
			if value, err = valueFrom(ctx, p, variable.ValueFrom); err != nil {
				return nil, fmt.Errorf("container %s: variable %s: %w", spec.Name, variable.Name, err)
			}
		}
		env[variable.Name] = value
	}
	return env, nil
}

func allOf(ctx context.Context, p *pod, source *corev1.EnvFromSource) (map[string][]byte, error) {
	if reference := source.SecretRef; reference != nil {
		return secret(ctx, p, reference.Name, optional(reference.Optional))
	}
	if reference := source.ConfigMapRef; reference != nil {
		return configMap(ctx, p, reference.Name, optional(reference.Optional))
	}
	return nil, nil
}

func valueFrom(ctx context.Context, p *pod, source *corev1.EnvVarSource) (string, error) {
	switch {
	case source.FieldRef != nil:
		return field(p, source.FieldRef.FieldPath)
	case source.SecretKeyRef != nil:
		reference := source.SecretKeyRef
		content, err := secret(ctx, p, reference.Name, optional(reference.Optional))
		return value(content, reference.Key, optional(reference.Optional), err)
	case source.ConfigMapKeyRef != nil:
		reference := source.ConfigMapKeyRef
		content, err := configMap(ctx, p, reference.Name, optional(reference.Optional))
		return value(content, reference.Key, optional(reference.Optional), err)
	}
	return "", fmt.Errorf("this source is not supported; use fieldRef, secretKeyRef or configMapKeyRef")
}

func value(content map[string][]byte, key string, optional bool, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, found := content[key]
	if !found && !optional {
		return "", fmt.Errorf("key %q does not exist", key)
	}
	return string(text), nil
}

func optional(flag *bool) bool { return flag != nil && *flag }
