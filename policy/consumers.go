// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

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

// SurplusConsumers is the number of consumers that are not the target's; 0 if that is unknown.
func (in Input) SurplusConsumers() int32 {
	if in.Unknown != nil {
		return 0
	}
	return int32(min(in.inReplicas().surplus()*float64(in.perReplica()), math.MaxInt32))
}

// MissingConsumers is the number of consumers that the running replicas of the target lack, by consumersPerReplica; 0
// if that is unknown, or while pods start or a rollout replaces them. What a replica processes cannot be learned then:
// the messages of several replicas would count as those of one.
func (in Input) MissingConsumers() int32 {
	consumers, err := in.Reading.Consumers.Value()
	if in.Spec.Subscription == nil || in.Unknown != nil || err != nil || !in.Reading.Coverage.Complete() ||
		in.Pods == nil || in.Pods.Running == nil || in.Pods.Unready > 0 || in.Pods.Updating {
		return 0
	}
	running := min(*in.Pods.Running, in.CurrentReplicas) // terminating pods run for a while without a consumer
	return int32(min(max(0, float64(running)*float64(in.perReplica())-consumers), math.MaxInt32))
}
