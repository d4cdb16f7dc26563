package scale

import (
	"fmt"
	"sync"
)

// problemsKept is how many problems are written down; the others are only counted.
const problemsKept = 5

// problems counts what went wrong. Its methods are safe for concurrent use.
type problems struct {
	mutex sync.Mutex
	count int
	first []string
}

func (p *problems) add(format string, arguments ...any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.count++
	if len(p.first) < problemsKept {
		p.first = append(p.first, fmt.Sprintf(format, arguments...))
	}
}

// counted is a number of problems and the first of them.
type counted struct {
	Count int      `json:"count"`
	First []string `json:"first,omitempty"`
}

func (p *problems) counted() counted {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return counted{p.count, p.first}
}
