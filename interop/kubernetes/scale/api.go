// The API server: plain JSON over HTTP, because the typed clients take more CPU.

package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

const (
	routeVersion = "gateway.networking.k8s.io/v1"
	namespace    = "scale"
	gatewayName  = "scale"
	servicePort  = 80
	backendPort  = 8080

	gatewayPath  = "/apis/" + routeVersion + "/namespaces/" + namespace + "/gateways/" + gatewayName
	routesPath   = "/apis/" + routeVersion + "/namespaces/" + namespace + "/httproutes"
	servicesPath = "/api/v1/namespaces/" + namespace + "/services"

	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
	// apiLimit is how long a request to the API server may take.
	apiLimit = 30 * time.Second
	// errorBytesMax bounds what is quoted of an error.
	errorBytesMax = 300
)

func serviceName(backend byte, index int) string { return fmt.Sprintf("%c-%d", backend, index) }

type api struct {
	client *http.Client
	base   string
}

func newAPI(config *rest.Config) (*api, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &api{client, strings.TrimSuffix(config.Host, "/")}, nil
}

// send returns the response to a request; its status is below 300.
func (a *api) send(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", jsonType)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	answer, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		// What could not be read is missing in the text only.
		text, _ := io.ReadAll(io.LimitReader(answer.Body, errorBytesMax))
		return nil, fmt.Errorf("%s %s: the API server answered %s: %s", method, path, answer.Status, text)
	}
	return answer, nil
}

// do sends a request and returns the body of the response, and when it was complete.
func (a *api) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, time.Time, error) {
	limited, cancel := context.WithTimeout(ctx, apiLimit)
	defer cancel()
	answer, err := a.send(limited, method, path, contentType, body)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%s %s: the response of the API server ended early: %w", method, path, err)
	}
	return content, time.Now(), nil
}

// get decodes an object.
func (a *api) get(ctx context.Context, path string, into any) error {
	content, _, err := a.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

// write applies a change of a route, and returns the route's generation after it; 0 after a deletion.
func (a *api) write(ctx context.Context, c *change) (int64, error) {
	method, path, contentType, body := http.MethodPatch, routesPath+"/"+c.route.name, mergeType, []byte(nil)
	switch c.kind {
	case create:
		method, path, contentType, body = http.MethodPost, routesPath, jsonType, c.route.manifest()
	case remove:
		method, contentType = http.MethodDelete, ""
	default:
		body = c.route.patch()
	}
	started := time.Now()
	content, returned, err := a.do(ctx, method, path, contentType, body)
	if err != nil {
		return 0, err
	}
	c.returned, c.wrote = returned, returned.Sub(started)
	if c.kind == remove {
		return 0, nil
	}
	written := routeStatus{}
	if err := json.Unmarshal(content, &written); err != nil {
		return 0, fmt.Errorf("%s %s: the response is not an HTTPRoute: %w", method, path, err)
	}
	return written.Metadata.Generation, nil
}

// addServices adds the Services of a backend, all in front of the same Pods.
func (a *api) addServices(ctx context.Context, backend byte, count int) error {
	for i := range count {
		service := object{
			"apiVersion": "v1", "kind": "Service", "metadata": object{"name": serviceName(backend, i)},
			"spec": object{
				"selector": object{"app": string(backend)},
				"ports":    []object{{"port": servicePort, "targetPort": backendPort}},
			},
		}
		if _, _, err := a.do(ctx, http.MethodPost, servicesPath, jsonType, encode(service)); err != nil {
			return err
		}
	}
	return nil
}
