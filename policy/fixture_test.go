// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// Fixtures of the tests of decisions and of plans.
var (
	noon, arrivals, learned = fixture.Noon, fixture.Arrivals, fixture.Capacity
	spec, reading, input    = fixture.CapacitySpec, fixture.Reading, fixture.Input
	randomInput             = fixture.RandomInput
)

// usual is the assumed busy time of a replica with work throughout, before one was seen.
const usual = 0.95

func backlogStrategy(messages int64) v1alpha1.Strategy {
	return v1alpha1.Strategy{
		Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: messages},
	}
}

func rateStrategy(perSecond string) v1alpha1.Strategy {
	return v1alpha1.Strategy{
		Type:           v1alpha1.StrategyRatePerReplica,
		RatePerReplica: &v1alpha1.RatePerReplica{MessagesPerSecond: resource.MustParse(perSecond)},
	}
}

func utilizationStrategy(percent int32) v1alpha1.Strategy {
	return v1alpha1.Strategy{
		Type: v1alpha1.StrategyUtilization, Utilization: &v1alpha1.Utilization{TargetPercent: percent},
	}
}

// decided is a decision of noon that no autoscaler has followed yet.
func decided(from, replicas int32) policy.Decided {
	return policy.Decided{ReplicasAt: policy.ReplicasAt{At: noon(), Replicas: replicas}, From: from}
}

// asking is an input with these strategies.
func asking(current int32, r backlog.Reading, strategies ...v1alpha1.Strategy) policy.Input {
	in := input(current, r)
	in.Spec.Strategies = strategies
	return in
}

// used is a reading of replicas that report this busy time.
func used(consumers, busy float64) backlog.Reading {
	r := reading(0, 500)
	r.Consumers, r.SteadyConsumers = backlog.Known(consumers), true
	r.Instances.Busy, r.Instances.Timed = backlog.Known(busy), int(consumers)
	return r
}

// timed is a reading of replicas that report this busy time at this rate in messages per second.
func timed(r backlog.Reading, replicas, busy, processed float64) backlog.Reading {
	r.Instances.Busy, r.Instances.ProcessRate, r.Instances.Window = backlog.Known(busy), backlog.Known(processed), r.Window
	r.Instances.ServiceTime = backlog.Unknown(backlog.ErrNoData)
	if processed > 0 {
		r.Instances.ServiceTime = backlog.Known(replicas * busy / processed)
	}
	return r
}

// stuck is a reading of busy replicas with a backlog throughout.
func stuck(consumers float64) backlog.Reading {
	r := used(consumers, usual)
	r.Ready, r.LeastReady = backlog.Known(20_000), backlog.Known(20_000)
	r.Undispatched, r.LeastUndispatched = backlog.Known(20_000), backlog.Known(20_000)
	return r
}

// covering is a capacity of replicas that report this busy time when they have work throughout.
func covering(share float64) *policy.LearnedCapacity {
	c := learned(100)
	c.Coverage = share
	return c
}
