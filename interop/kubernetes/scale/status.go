// The statuses of routes, from a watch.

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// routeStatus is what of an HTTPRoute matters here.
type routeStatus struct {
	Metadata struct {
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Status struct {
		Parents []struct {
			Conditions []condition `json:"conditions"`
		} `json:"parents"`
	} `json:"status"`
}

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

// accepted returns the generation for which the status says that the route is accepted and its references are
// resolved; 0 if it does not say so.
func (r *routeStatus) accepted() int64 {
	if len(r.Status.Parents) != 1 {
		return 0
	}
	var accepted, resolved int64
	for _, c := range r.Status.Parents[0].Conditions {
		if c.Status != "True" {
			continue
		}
		switch c.Type {
		case "Accepted":
			accepted = c.ObservedGeneration
		case "ResolvedRefs":
			resolved = c.ObservedGeneration
		}
	}
	return min(accepted, resolved)
}

// statuses collects when routes were accepted. Its methods are safe for concurrent use.
type statuses struct {
	mutex   sync.Mutex
	seen    map[string]observation
	waiting map[string][]expectation
}

type observation struct {
	generation int64
	at         time.Time
}

type expectation struct {
	generation int64
	change     *change
}

func newStatuses() *statuses {
	return &statuses{seen: map[string]observation{}, waiting: map[string][]expectation{}}
}

// observe stores that a generation of a route was accepted.
func (s *statuses) observe(name string, generation int64, at time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.seen[name].generation < generation {
		s.seen[name] = observation{generation, at}
	}
	// A later generation includes the changes of earlier ones, whose statuses may never be written.
	left := slices.DeleteFunc(s.waiting[name], func(e expectation) bool {
		if generation < e.generation {
			return false
		}
		e.change.accepted = max(0, at.Sub(e.change.returned))
		return true
	})
	if s.waiting[name] = left; len(left) == 0 {
		delete(s.waiting, name)
	}
}

// expect waits for the status of a written change, which may have been seen before the write returned.
func (s *statuses) expect(c *change, generation int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if o := s.seen[c.route.name]; o.generation >= generation {
		c.accepted = max(0, o.at.Sub(c.returned))
		return
	}
	s.waiting[c.route.name] = append(s.waiting[c.route.name], expectation{generation, c})
}

// forget stops the wait for the status of a route that was deleted.
func (s *statuses) forget(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, e := range s.waiting[name] {
		e.change.accepted = superseded
	}
	delete(s.waiting, name)
}

// missing returns for how many routes a status is awaited.
func (s *statuses) missing() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.waiting)
}

// acceptedOf returns a change's time to its status.
func (s *statuses) acceptedOf(c *change) time.Duration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return c.accepted
}

// watchesMax bounds how often the watch is started. The API server ends it when it reloads the CRD, for example.
const watchesMax = 100

// watch observes until the context ends; then the error is nil.
func (s *statuses) watch(ctx context.Context, a *api) error {
	var err error
	for range watchesMax {
		if err = s.watchOnce(ctx, a); ctx.Err() != nil {
			return nil
		}
		pause(ctx, watchPause)
	}
	return fmt.Errorf("the watch of HTTPRoutes ended %d times: %w; look into the API server's log", watchesMax, err)
}

const watchPause = 10 * time.Millisecond

// watchOnce starts with the current state of all routes.
func (s *statuses) watchOnce(ctx context.Context, a *api) error {
	answer, err := a.send(ctx, "GET", routesPath+"?watch=true&resourceVersion=0&timeoutSeconds=86400", "", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	events := json.NewDecoder(answer.Body)
	for {
		event := struct {
			Type   string      `json:"type"`
			Object routeStatus `json:"object"`
		}{}
		if err := events.Decode(&event); err != nil {
			return err
		}
		at := time.Now()
		if generation := event.Object.accepted(); generation > 0 && event.Type != "DELETED" {
			s.observe(event.Object.Metadata.Name, generation, at)
		}
	}
}
