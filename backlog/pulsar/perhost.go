// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/url"
	"time"
)

// maxHosts bounds the hosts with a state; beyond it the least recently used idle host is dropped.
const maxHosts = 1024

// perHost keeps a state for each scheme, host and port: plain HTTP to a TLS port fails, which is independent of TLS
// there. Its owner's mutex guards it.
type perHost[S any] struct {
	build  func() S
	states map[string]*hostState[S]
}

type hostState[S any] struct {
	state S
	// users is the number of waiting and active requests.
	users int
	used  time.Time
}

func newPerHost[S any](build func() S) perHost[S] {
	return perHost[S]{build: build, states: map[string]*hostState[S]{}}
}

// of returns the state of a host, or creates it; nil if too many hosts are all in use, or the URL has no host.
func (p perHost[S]) of(u *url.URL, now time.Time) *hostState[S] {
	host, ok := canonicalHost(u.Hostname())
	if !ok { // AllowedHosts refuses such a host
		return nil
	}
	key := u.Scheme + "://" + host + ":" + portOf(u)
	if known := p.states[key]; known != nil {
		return known
	}
	if len(p.states) >= maxHosts && !p.dropOldest() {
		return nil
	}
	fresh := &hostState[S]{state: p.build(), used: now}
	p.states[key] = fresh
	return fresh
}

func (p perHost[S]) dropOldest() bool {
	oldest := ""
	for key, host := range p.states {
		if host.users == 0 && (oldest == "" || host.used.Before(p.states[oldest].used)) {
			oldest = key
		}
	}
	delete(p.states, oldest)
	return oldest != ""
}
