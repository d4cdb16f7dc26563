// Where the content of volumes and of environment variables comes from: Secrets, ConfigMaps, fields of the Pod, and
// tokens of its ServiceAccount.

package nodes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/fieldpath"

	"weir.test/interop/kubernetes/cluster"
)

// modeDefault is the mode of files for which the API server's defaults do not apply.
const modeDefault = 0o644

// volumeFiles returns the files of a volume.
func volumeFiles(ctx context.Context, p *pod, volume *corev1.Volume) (files, error) {
	switch {
	case volume.Secret != nil:
		source := volume.Secret
		content, err := secret(ctx, p, source.SecretName, optional(source.Optional))
		return selected(content, source.Items, optional(source.Optional), source.DefaultMode, err)
	case volume.ConfigMap != nil:
		source := volume.ConfigMap
		content, err := configMap(ctx, p, source.Name, optional(source.Optional))
		return selected(content, source.Items, optional(source.Optional), source.DefaultMode, err)
	case volume.DownwardAPI != nil:
		return fieldFiles(p, volume.DownwardAPI.Items, volume.DownwardAPI.DefaultMode)
	case volume.Projected != nil:
		all := files{}
		for i := range volume.Projected.Sources {
			some, err := projectedFiles(ctx, p, &volume.Projected.Sources[i], volume.Projected.DefaultMode)
			if err != nil {
				return nil, err
			}
			maps.Copy(all, some)
		}
		return all, nil
	}
	return nil, fmt.Errorf("this kind of volume is not supported; use secret, configMap, downwardAPI, projected or emptyDir")
}

func projectedFiles(ctx context.Context, p *pod, source *corev1.VolumeProjection, mode *int32) (files, error) {
	switch {
	case source.Secret != nil:
		content, err := secret(ctx, p, source.Secret.Name, optional(source.Secret.Optional))
		return selected(content, source.Secret.Items, optional(source.Secret.Optional), mode, err)
	case source.ConfigMap != nil:
		content, err := configMap(ctx, p, source.ConfigMap.Name, optional(source.ConfigMap.Optional))
		return selected(content, source.ConfigMap.Items, optional(source.ConfigMap.Optional), mode, err)
	case source.DownwardAPI != nil:
		return fieldFiles(p, source.DownwardAPI.Items, mode)
	case source.ServiceAccountToken != nil:
		content, err := p.token(ctx, source.ServiceAccountToken)
		return files{source.ServiceAccountToken.Path: {[]byte(content), fileMode(nil, mode)}}, err
	}
	return nil, fmt.Errorf("this source is not supported; use secret, configMap, downwardAPI or serviceAccountToken")
}

// secret returns the content of a Secret by key.
func secret(ctx context.Context, p *pod, name string, optional bool) (map[string][]byte, error) {
	object, err := p.agent.client.CoreV1().Secrets(p.object.Namespace).Get(ctx, name, metav1.GetOptions{})
	if optional && errors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object.Data, nil
}

// configMap returns the content of a ConfigMap by key.
func configMap(ctx context.Context, p *pod, name string, optional bool) (map[string][]byte, error) {
	object, err := p.agent.client.CoreV1().ConfigMaps(p.object.Namespace).Get(ctx, name, metav1.GetOptions{})
	if optional && errors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	content := map[string][]byte{}
	for key, text := range object.Data {
		content[key] = []byte(text)
	}
	maps.Copy(content, object.BinaryData)
	return content, nil
}

// selected renames the content by the volume's items; without items, each key is a file.
func selected(
	content map[string][]byte, items []corev1.KeyToPath, optional bool, mode *int32, err error,
) (files, error) {
	if err != nil {
		return nil, err
	}
	found := files{}
	if len(items) == 0 {
		for key, text := range content {
			found[key] = file{text, fileMode(nil, mode)}
		}
	}
	for _, item := range items {
		text, exists := content[item.Key]
		if !exists && !optional {
			return nil, fmt.Errorf("key %q does not exist", item.Key)
		}
		if exists {
			found[item.Path] = file{text, fileMode(item.Mode, mode)}
		}
	}
	return found, nil
}

// fileMode returns the first mode that is set.
func fileMode(modes ...*int32) os.FileMode {
	for _, mode := range modes {
		if mode != nil {
			return os.FileMode(*mode)
		}
	}
	return modeDefault
}

// fieldFiles returns the files of the downward API.
func fieldFiles(p *pod, items []corev1.DownwardAPIVolumeFile, mode *int32) (files, error) {
	found := files{}
	for _, item := range items {
		if item.FieldRef == nil {
			return nil, fmt.Errorf("%s: resourceFieldRef is not supported; use fieldRef", item.Path)
		}
		text, err := field(p, item.FieldRef.FieldPath)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", item.Path, err)
		}
		found[item.Path] = file{[]byte(text), fileMode(item.Mode, mode)}
	}
	return found, nil
}

// field returns a field of the Pod, as it was first seen.
func field(p *pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return cluster.NodeName, nil
	case "spec.serviceAccountName":
		return p.object.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return cluster.Node.String(), nil
	case "status.podIP", "status.podIPs":
		return p.network.address.String(), nil
	}
	return fieldpath.ExtractFieldPathAsString(p.object, path)
}

// token is a token of a ServiceAccount that the API server has issued for a Pod.
type token struct {
	content string
	renew   time.Time
}

// token returns a token of the Pod's ServiceAccount. It is renewed after four fifths of its life, as a kubelet does.
func (p *pod) token(ctx context.Context, source *corev1.ServiceAccountTokenProjection) (string, error) {
	key := fmt.Sprintf("%s %d", source.Audience, *source.ExpirationSeconds)
	p.tokensMutex.Lock()
	defer p.tokensMutex.Unlock()
	if kept, found := p.tokens[key]; found && time.Now().Before(kept.renew) {
		return kept.content, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: p.object.Name, UID: p.object.UID,
		},
	}}
	if source.Audience != "" {
		request.Spec.Audiences = []string{source.Audience}
	}
	account := p.object.Spec.ServiceAccountName
	issued, err := p.agent.client.CoreV1().ServiceAccounts(p.object.Namespace).
		CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of ServiceAccount %s: %w", account, err)
	}
	life := time.Duration(*source.ExpirationSeconds) * time.Second
	p.tokens[key] = token{issued.Status.Token, time.Now().Add(life * 4 / 5)}
	return issued.Status.Token, nil
}
