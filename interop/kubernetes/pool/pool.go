// Package pool hands out the addresses of an IPv4 prefix: to Pods, and to Services of type LoadBalancer.
package pool

import (
	"fmt"
	"net/netip"
	"sync"
)

// Pool holds the addresses of a prefix that are in use. Its methods are safe for concurrent use.
type Pool struct {
	mutex  sync.Mutex
	prefix netip.Prefix
	last   netip.Addr
	used   map[netip.Addr]bool
}

// New returns a pool that hands out the addresses of the prefix after first.
func New(prefix netip.Prefix, first netip.Addr) *Pool {
	return &Pool{prefix: prefix, last: first, used: map[netip.Addr]bool{}}
}

// Contains reports whether the address belongs to the pool, used or not.
func (p *Pool) Contains(address netip.Addr) bool {
	return p.prefix.Contains(address)
}

// Take returns an unused address. An address that was released is reused last, so that a client with an outdated
// address does not reach another Pod or Service.
func (p *Pool) Take() (netip.Addr, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	first := p.prefix.Masked().Addr().Next()
	candidate := p.last
	for range 1 << (32 - p.prefix.Bits()) {
		candidate = candidate.Next()
		if !p.prefix.Contains(candidate) {
			candidate = first.Next()
		}
		if !p.used[candidate] {
			p.used[candidate] = true
			p.last = candidate
			return candidate, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all addresses of %s are in use", p.prefix)
}

// Claim marks an address as used and reports whether it was free and belongs to the pool.
func (p *Pool) Claim(address netip.Addr) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.prefix.Contains(address) || p.used[address] {
		return false
	}
	p.used[address] = true
	return true
}

// Release makes an address available again.
func (p *Pool) Release(address netip.Addr) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.used, address)
}
