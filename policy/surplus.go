// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// surplusFor is how long surplus consumers have to stay before they are reported: those of terminating pods disconnect
// after a grace period, those of a lost node after a keep-alive of the broker.
const surplusFor = 2 * time.Minute

// Surplus is since when the subscription has had more consumers than the target's replicas open; zero for none.
type Surplus struct {
	Since time.Time `json:"since,omitzero"`
}

// learn learns from a poll. While replicas start or stop, consumers come and go.
func (s Surplus) learn(in Input, start Start) Surplus {
	switch {
	case in.surplus() < 1 || start.Open:
		return Surplus{}
	case s.Since.IsZero():
		return Surplus{Since: in.Now}
	default:
		return s
	}
}

// reported is how many consumers are not the target's; 0 before they have stayed.
func (s Surplus) reported(in Input) int32 {
	if s.Since.IsZero() || in.Now.Sub(s.Since) < surplusFor {
		return 0
	}
	return int32(min(in.surplus()*float64(in.perReplica()), math.MaxInt32))
}

// perReplica is how many consumers a replica opens.
func (in Input) perReplica() int32 {
	if s := in.Spec.Subscription; s != nil {
		return max(1, s.ConsumersPerReplica)
	}
	return 1
}

// replicasOf is how many replicas so many consumers or partitions correspond to.
func (in Input) replicasOf(consumers float64) float64 {
	return math.Ceil(consumers / float64(in.perReplica()))
}

// inReplicas is the input with consumers counted in replicas, as the algorithm does.
func (in Input) inReplicas() Input {
	if consumers, err := in.Reading.Consumers.Value(); err == nil {
		in.Reading.Consumers = backlog.Known(in.replicasOf(consumers))
	}
	return in
}

// surplus is how many consumers, in replicas, are not the target's own; 0 if unknown.
func (in Input) surplus() float64 {
	consuming, err := in.Reading.Consumers.Value()
	if err != nil || in.Own == nil {
		return 0
	}
	return max(0, consuming-float64(*in.Own))
}

// withoutSurplus leaves out surplus consumers with their share of the process rate: they may disconnect at any time, so
// the target must manage alone.
func (in Input) withoutSurplus() Input {
	surplus := in.surplus()
	if surplus == 0 {
		return in
	}
	consuming, _ := in.Reading.Consumers.Value() // it is known, or there would be no surplus
	own := consuming - surplus
	in.Reading.Consumers = backlog.Known(own)
	if processed, err := in.Reading.ProcessRate.Value(); err == nil {
		in.Reading.ProcessRate = backlog.Known(processed * own / consuming)
	}
	return in
}

// ofSubscription is the state, or a new one where the policy names another subscription than the learned one. How long
// replicas take to start stays known.
func (s State) ofSubscription(in Input) State {
	wanted := fingerprint(in.Spec.Subscription)
	if s.Subscription == wanted {
		return s
	}
	fresh := State{DecidedAt: s.DecidedAt, Subscription: wanted, Start: s.Start}
	fresh.Start.Open, fresh.Start.Consuming = false, 0
	return fresh.holding(in.CurrentReplicas, in.Now)
}

// Forgets says that the next decision on this spec forgets what the state has learned, since the spec names another
// subscription.
func (s State) Forgets(spec v1alpha1.AutoscalingPolicySpec) bool {
	return s.Subscription != fingerprint(spec.Subscription) && s.Arrivals != nil
}
