// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// burst follows the policies of which the load doubles at once: when they first decided on more replicas, and when the
// Functions got more. It is safe for concurrent use.
type burst struct {
	// mu guards the fields below, by the name of a Function.
	mu                sync.Mutex
	replicas          map[string]int
	decided, followed map[string]time.Time
	// began is when the load doubled.
	began time.Time
	// more is one replica more than before the burst, only of policies in it.
	more map[string]int
	// direct are the policies that the controller writes replicas for.
	direct map[string]bool
}

func newBurst(names []string) *burst {
	b := &burst{
		replicas: map[string]int{}, decided: map[string]time.Time{}, followed: map[string]time.Time{},
		more: map[string]int{}, direct: map[string]bool{},
	}
	for _, name := range names {
		b.replicas[name] = replicas
	}
	return b
}

// begin makes what comes count for these Functions.
func (b *burst) begin(names []string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began = now
	for _, name := range names {
		b.more[name] = b.replicas[name] + 1
	}
}

// scaled records spec.replicas of a Function, and returns those before.
func (b *burst) scaled(function string, replicas int, now time.Time) (before int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.replicas[function] = b.replicas[function], replicas
	if more, counts := b.more[function]; counts && replicas >= more && b.followed[function].IsZero() {
		b.followed[function] = now
	}
	return before
}

// saw records a policy's decision, of which the first that raises replicas counts.
func (b *burst) saw(p *v1alpha1.AutoscalingPolicy, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.direct[p.Name] = p.Status.Actuator != nil && p.Status.Actuator.Type == v1alpha1.ActuatorDirect
	desired := p.Status.DesiredReplicas
	if more, counts := b.more[p.Name]; counts && desired != nil && int(*desired) >= more && b.decided[p.Name].IsZero() {
		b.decided[p.Name] = now
	}
}

// waits are the times from decisions to replicas, 0 where the replicas were seen first, and from the load to replicas,
// both in order.
func (b *burst) waits() (fromDecision, fromLoad []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, at := range b.followed {
		if decided := b.decided[name]; !decided.IsZero() {
			fromDecision, fromLoad = append(fromDecision, max(0, at.Sub(decided))), append(fromLoad, at.Sub(b.began))
		}
	}
	slices.Sort(fromDecision)
	slices.Sort(fromLoad)
	return fromDecision, fromLoad
}

func (b *burst) directs() (count int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, direct := range b.direct {
		if direct {
			count++
		}
	}
	return count
}

// follow records decisions until ctx ends.
func (b *burst) follow(ctx context.Context, s *scene) error {
	return fake.Follow(ctx, s.client, &v1alpha1.AutoscalingPolicyList{}, stage.Namespace, func(event watch.Event) error {
		if p, ok := event.Object.(*v1alpha1.AutoscalingPolicy); ok {
			b.saw(p, time.Now())
		}
		return nil
	})
}

// measureBurst doubles the load of some policies, and waits until all have their replicas.
func (b bench) measureBurst(ctx context.Context, sc *scene, r *row) error {
	const look, limit = time.Second, 5 * time.Minute
	some := sc.names[len(sc.names)-b.burst:]
	r.Burst = b.burst
	b.tell("doubling the load of %d policies", b.burst)
	sc.burst.begin(some, time.Now())
	for i, name := range some {
		sc.loads[name].Publish(2*sc.means[len(sc.names)-b.burst+i], time.Now())
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := cluster.WaitFor(limited, "replicas for the burst", look, func(context.Context) (bool, string, error) {
		waits, _ := sc.burst.waits()
		return len(waits) == b.burst, fmt.Sprintf("%d of %d", len(waits), b.burst), nil
	})
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	waits, all := sc.burst.waits() // some may be missing, which is a result
	r.BurstP50Seconds, r.BurstP99Seconds, r.BurstMaxSeconds = output.Waits(waits, b.burst)
	r.BurstLoadP50Seconds, r.BurstLoadP99Seconds, _ = output.Waits(all, b.burst)
	return nil
}
