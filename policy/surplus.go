// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// surplusFor is how long surplus consumers have to stay before they are reported. Those of terminating pods disconnect
// after a grace period, and those of a lost node after a keep-alive of the broker.
const surplusFor = 2 * time.Minute

// Surplus is when the subscription began to have more consumers than the target's replicas open; zero for none.
type Surplus struct {
	Since time.Time `json:"since,omitzero"`
}

// learn learns from a poll. While replicas start or stop, the number of consumers is not stable.
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

// reported is the number of consumers that are not the target's; 0 until they have stayed for surplusFor.
func (s Surplus) reported(in Input) int32 {
	if s.Since.IsZero() || in.Now.Sub(s.Since) < surplusFor {
		return 0
	}
	return int32(min(in.surplus()*float64(in.perReplica()), math.MaxInt32))
}

// perReplica is the number of consumers that a replica opens.
func (in Input) perReplica() int32 {
	if s := in.Spec.Subscription; s != nil {
		return max(1, s.ConsumersPerReplica)
	}
	return 1
}

// replicasOf is the number of replicas that a number of consumers or partitions corresponds to.
func (in Input) replicasOf(consumers float64) float64 {
	return math.Ceil(consumers / float64(in.perReplica()))
}

// inReplicas is the input with consumers counted in replicas.
func (in Input) inReplicas() Input {
	if consumers, err := in.Reading.Consumers.Value(); err == nil {
		in.Reading.Consumers = backlog.Known(in.replicasOf(consumers))
	}
	return in
}

// surplus is the number of consumers, in replicas, that are not the target's; 0 if unknown.
func (in Input) surplus() float64 {
	consuming, err := in.Reading.Consumers.Value()
	if err != nil || in.Own == nil {
		return 0
	}
	return max(0, consuming-float64(*in.Own))
}

// withoutSurplus leaves out surplus consumers and their share of the process rate. They may disconnect at any time, so
// the target has to process the load alone.
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

// ofSubscription is the state, or a new one if the policy names another subscription than the learned one. The learned
// start time stays.
func (s State) ofSubscription(in Input) State {
	wanted := fingerprint(in.Spec.Subscription)
	if s.Subscription == wanted {
		return s
	}
	fresh := State{DecidedAt: s.DecidedAt, Subscription: wanted, Start: s.Start}
	fresh.Start.Open, fresh.Start.Consuming = false, 0
	return fresh.holding(in.CurrentReplicas, in.Now)
}

// Forgets reports whether the next decision on this spec discards the learned state, since the spec names another
// subscription.
func (s State) Forgets(spec v1alpha1.AutoscalingPolicySpec) bool {
	return s.Subscription != fingerprint(spec.Subscription) && s.Arrivals != nil
}
