// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// hangFor is how long a worker is not asked about instances after a question that was not answered in time. The
// question goes on to wait there, with a thread of the web server: for the lock that the worker holds while it stops
// instances, some 10 s for one that does not heed interrupts, and while it deletes a function, for which it asks the
// broker about its topics. On 4.0.8 eight such questions were seen to take all threads of a broker with a worker of its
// own, which then waited for one another for minutes.
const hangFor = time.Minute

// workerGate lets one question about instances at a time through to each worker, and none to one that hangs.
type workerGate struct {
	now func() time.Time

	// mu guards hosts and what it points to, but for their turns.
	mu    sync.Mutex
	hosts map[string]*workerHost
}

type workerHost struct {
	// turn has a token while a question is under way.
	turn chan struct{}
	// users wait for it or have it.
	users int
	// until then it hangs.
	until time.Time
}

func newWorkerGate(now func() time.Time) *workerGate {
	return &workerGate{now: now, hosts: map[string]*workerHost{}}
}

// through asks when it is the caller's turn.
func (g *workerGate) through(ctx context.Context, a address, ask func() error) error {
	name := a.base.Host
	host := g.join(name)
	defer g.leave(host)
	select {
	case host.turn <- struct{}{}:
		defer func() { <-host.turn }()
	case <-ctx.Done():
		return transportFault(a, a.base, ctx.Err(), 0)
	}
	if until := g.hangs(host); !until.IsZero() {
		return backlog.Because(backlog.ErrUnavailable,
			"%s did not say in time how instances are, which it does not while it stops or deletes "+
				"some: asked again at %s", name, until.UTC().Format(time.RFC3339))
	}
	err := ask()
	if errors.Is(err, context.DeadlineExceeded) {
		g.mu.Lock()
		defer g.mu.Unlock()
		host.until = g.now().Add(hangFor)
	}
	return err
}

// join also forgets the hosts that nobody needs.
func (g *workerGate) join(name string) *workerHost {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	maps.DeleteFunc(g.hosts, func(_ string, h *workerHost) bool { return h.users == 0 && !now.Before(h.until) })
	host := g.hosts[name]
	if host == nil {
		host = &workerHost{turn: make(chan struct{}, 1)}
		g.hosts[name] = host
	}
	host.users++
	return host
}

func (g *workerGate) leave(host *workerHost) {
	g.mu.Lock()
	defer g.mu.Unlock()
	host.users--
}

// hangs is until when; zero for a host that is well.
func (g *workerGate) hangs(host *workerHost) (until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now().Before(host.until) {
		return host.until
	}
	return time.Time{}
}
