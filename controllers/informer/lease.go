// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

// leaseExpires is how long the holder of the Lease may be silent and still count as deciding. A Lease expires after 15
// s, and the next holder takes up to 17 s more to acquire it, start and decide: twice that is enough. The HPA syncs
// every 15 s, so it misses two metrics at most before the adapter reports the silence.
const leaseExpires = 60 * time.Second

// DecisionMaker is the replica that decides for all policies: the holder of the leader election's Lease, as this
// replica sees it. It is safe for concurrent use.
type DecisionMaker struct {
	config Config
	own    OwnDecision
	seen   atomic.Pointer[leaseState]
}

// OwnDecision returns when this process last decided for a policy, and why it has not since, as far as that is known;
// known is false if it does not decide for the policy.
type OwnDecision func(policy types.NamespacedName) (at time.Time, why string, known bool)

// leaseState is the Lease as last observed; it is replaced, never changed.
type leaseState struct {
	holder string
	// renewTime as the holder wrote it, by its own clock.
	renewTime time.Time
	// aliveAt is when this replica saw the holder renew or release the Lease, by its own clock, so that clocks may differ
	// between nodes. For the first Lease it is the renewTime.
	aliveAt time.Time
}

// NewDecisionMaker has not observed the Lease before Follow. It takes a configuration that New accepted; own is nil for
// a process that never decides.
func NewDecisionMaker(config Config, own OwnDecision) *DecisionMaker {
	return &DecisionMaker{config: config, own: own}
}

// Follow follows the Lease through the cache.
func (d *DecisionMaker) Follow(ctx context.Context, informers cache.Informers) error {
	if _, err := cluster.Follow(ctx, informers, &coordinationv1.Lease{}, d.observe); err != nil {
		return fmt.Errorf("decision maker: watching Leases: %w", err)
	}
	return nil
}

func (d *DecisionMaker) observe(key types.NamespacedName, object client.Object) {
	if key != d.config.Lease {
		return
	}
	lease, exists := object.(*coordinationv1.Lease)
	if !exists {
		d.seen.Store(nil)
		return
	}
	after := &leaseState{}
	if lease.Spec.HolderIdentity != nil {
		after.holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		after.renewTime = lease.Spec.RenewTime.Time
	}
	switch before := d.seen.Load(); {
	case before == nil:
		after.aliveAt = after.renewTime
	case before.holder == after.holder && before.renewTime.Equal(after.renewTime):
		after.aliveAt = before.aliveAt
	default:
		after.aliveAt = d.config.Clock()
	}
	d.seen.Store(after)
}

type silenceError struct {
	text  string
	since time.Time
}

func (e *silenceError) Error() string { return e.text }

// Since is when a controller was last alive; zero when that is unknown.
func (e *silenceError) Since() time.Time { return e.since }

// Alive fails when no controller decides; the error has a method Since() time.Time. The text is the same at every call,
// because conditions show it.
func (d *DecisionMaker) Alive(now time.Time) error {
	seen := d.seen.Load()
	switch {
	case seen == nil:
		return &silenceError{text: fmt.Sprintf(
			"no decision maker: Lease %s does not exist: is a replica of the adapter running?", d.config.Lease)}
	case now.Sub(seen.aliveAt) <= leaseExpires:
		return nil // a rollout leaves the Lease without a holder for 1-2 s: no reason to stop every autoscaler
	case seen.holder == "":
		return &silenceError{
			since: seen.aliveAt,
			text: fmt.Sprintf("no decision maker: Lease %s has had no holder since %s: is a replica of the adapter running?",
				d.config.Lease, seen.aliveAt.UTC().Format(time.RFC3339)),
		}
	default:
		return &silenceError{
			since: seen.aliveAt,
			text: fmt.Sprintf("no decision maker: %s, which holds Lease %s, has not renewed it since %s",
				seen.holder, d.config.Lease, seen.aliveAt.UTC().Format(time.RFC3339)),
		}
	}
}

// Current fails when the policy's decision is too old to follow, or when no controller decides. The error and its text
// are as those of Alive.
func (d *DecisionMaker) Current(p *v1alpha1.AutoscalingPolicy, now time.Time) error {
	if err := d.Alive(now); err != nil {
		return err
	}
	if d.own != nil {
		at, why, known := d.own(client.ObjectKeyFromObject(p))
		switch {
		case known && now.Sub(at) <= served.MaxAge(d.config.PollInterval):
			return nil
		case known:
			return outdated(at, cmp.Or(why, "no reconcile of the policy has ended since: see the log of the adapter"))
		}
	}
	decision, most := p.Status.Decision, served.MaxWrittenAge(d.config.PollInterval)
	if decision == nil || d.holdersTime(now).Sub(decision.Time.Time) <= most {
		return nil // without a decision the status shows why
	}
	return outdated(decision.Time.Time, fmt.Sprintf("the holder of Lease %s renews it every few minutes while it "+
		"decides: see its log, and condition Ready of the policy", d.config.Lease))
}

func outdated(since time.Time, why string) error {
	return &silenceError{
		since: since, text: fmt.Sprintf("no decision since %s: %s", since.UTC().Format(time.RFC3339), why),
	}
}

// holdersTime is the time by the clock of the Lease's holder, which writes the times of decisions too.
func (d *DecisionMaker) holdersTime(now time.Time) time.Time {
	seen := d.seen.Load()
	if seen == nil {
		return now
	}
	return seen.renewTime.Add(now.Sub(seen.aliveAt))
}
