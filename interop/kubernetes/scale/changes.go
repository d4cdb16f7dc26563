// The routes, and how they change.

package scale

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// kind is a kind of change.
type kind int

const (
	create kind = iota
	switchBackend
	switchPath
	remove
	kinds
)

var kindNames = [kinds]string{"create", "backend", "path", "delete"}

// The two backends. Each has several Services, `a-0` and so on.
const (
	backendA = 'a'
	backendB = 'b'
)

// route is an HTTPRoute with a hostname of its own.
type route struct {
	name    string
	service int
	backend byte
	// path is the number in the path prefix.
	path int
}

func newRoute(name string, service int) *route {
	return &route{name: name, service: service, backend: backendA}
}

// request returns the prepared request that the route serves.
func (r *route) request() []byte {
	return fmt.Appendf(nil, "GET /v%d HTTP/1.1\r\nHost: %s.example\r\n\r\n", r.path, r.name)
}

type object = map[string]any

func (r *route) spec() object {
	return object{
		"parentRefs": []object{{"name": gatewayName}},
		"hostnames":  []string{r.name + ".example"},
		"rules": []object{{
			"matches":     []object{{"path": object{"type": "PathPrefix", "value": fmt.Sprintf("/v%d", r.path)}}},
			"backendRefs": []object{{"name": serviceName(r.backend, r.service), "port": servicePort}},
		}},
	}
}

// manifest returns the whole object.
func (r *route) manifest() []byte {
	return encode(object{
		"apiVersion": routeVersion, "kind": "HTTPRoute",
		"metadata": object{"name": r.name, "namespace": namespace}, "spec": r.spec(),
	})
}

// patch returns a merge patch with the specification.
func (r *route) patch() []byte { return encode(object{"spec": r.spec()}) }

// encode panics only on what the code above never has: channels, functions, cycles.
func encode(o object) []byte {
	content, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return content
}

// want is an expected response.
type want struct {
	status int
	// backend is compared if the status is 200.
	backend byte
}

var notFound = want{status: 404}

func (w want) met(r response) bool {
	return r.status == w.status && (w.status != 200 || r.backend == w.backend)
}

// change is one change of a route, and what was measured of it.
type change struct {
	kind  kind
	route *route
	// request is answered as `before` until the change has its effect, and as `after` from then on.
	request       []byte
	before, after want
	// scheduled is when the write should have started, returned when the API server had answered.
	scheduled, returned time.Time
	// wrote is how long the API server took.
	wrote time.Duration
	// effective has the time from `returned` to the first right response, for each Pod of Weir; lost if there was none.
	effective []time.Duration
	// gap is the time from the last wrong probe to the first right response: how uncertain `effective` is.
	gap []time.Duration
	// accepted is the time from `returned` to the route's status: unknown if it was not seen, superseded if the route
	// was deleted first.
	accepted time.Duration
	// unsettled counts the Pods whose probes have not ended.
	unsettled atomic.Int32
}

const (
	lost       time.Duration = -1
	unknown    time.Duration = -1
	superseded time.Duration = -2
)

// newChange applies a change of the kind to the route, and returns what to expect.
func newChange(kind kind, r *route, pods int) *change {
	c := &change{
		kind: kind, route: r, accepted: unknown,
		effective: make([]time.Duration, pods), gap: make([]time.Duration, pods),
	}
	for i := range c.effective {
		c.effective[i] = lost
	}
	c.unsettled.Store(int32(pods))
	before := want{200, r.backend}
	switch kind {
	case create:
		before = notFound
	case switchBackend:
		r.backend = backendA + backendB - r.backend
	case switchPath:
		before = notFound
		r.path++
	}
	c.before, c.after = before, want{200, r.backend}
	if kind == remove {
		c.after = notFound
	}
	c.request = r.request()
	return c
}

// everywhere returns the time until the last Pod answered as expected; false if one did not.
func (c *change) everywhere() (time.Duration, bool) {
	var last time.Duration
	for _, d := range c.effective {
		if d == lost {
			return 0, false
		}
		last = max(last, d)
	}
	return last, true
}

// somewhere returns the time until the first Pod answered as expected, if all did.
func (c *change) somewhere() time.Duration { return slices.Min(c.effective) }
