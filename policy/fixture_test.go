// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// arrivals have been steady for long.
func arrivals(perSecond float64) *policy.Arrivals {
	return &policy.Arrivals{Fast: perSecond, Slow: perSecond, Rise: 0.05}
}

func learned(perSecond float64) *policy.LearnedCapacity {
	return &policy.LearnedCapacity{MessagesPerSecond: perSecond, Variance: 1e-4, Observations: 5, LearnedAt: noon()}
}

// spec is from 1 to 50 replicas with an objective of 60 s.
func spec() v1alpha1.AutoscalingPolicySpec {
	return v1alpha1.AutoscalingPolicySpec{
		ScaleTargetRef: v1alpha1.ScaleTargetRef{
			APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: "resize",
		},
		ScalingSpec: v1alpha1.ScalingSpec{
			MinReplicas: new(int32(1)), MaxReplicas: 50, LatencyObjective: metav1.Duration{Duration: time.Minute},
		},
	}
}

// reading is a fresh one of a pool that keeps up.
func reading(ready, publish float64) backlog.Reading {
	return backlog.Reading{
		At: noon(), ExactAt: noon(), Type: backlog.Shared, Window: 10 * time.Second,
		Total: backlog.Known(ready), Ready: backlog.Known(ready), LeastReady: backlog.Known(ready),
		Delayed: backlog.Known(
			0), Unacked: backlog.Known(0), Undispatched: backlog.Known(ready), LeastUndispatched: backlog.Known(0),
		PublishRate: backlog.Known(publish), ProcessRate: backlog.Known(publish), Consumers: backlog.Known(1),
	}
}

func input(current int32, r backlog.Reading) policy.Input {
	return policy.Input{Now: noon(), Spec: spec(), CurrentReplicas: current, Reading: r, FreshFor: 30 * time.Second}
}

// usual is how busy a replica with work all the time is taken to show before one was seen.
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

// asking is an input under these strategies.
func asking(current int32, r backlog.Reading, strategies ...v1alpha1.Strategy) policy.Input {
	in := input(current, r)
	in.Spec.Strategies = strategies
	return in
}

// used is a reading of replicas that say how busy they are.
func used(consumers, busy float64) backlog.Reading {
	r := reading(0, 500)
	r.Consumers, r.SteadyConsumers = backlog.Known(consumers), true
	r.Instances.Busy = backlog.Known(busy)
	return r
}

// stuck is one of replicas that are busy, with work waiting all the time.
func stuck(consumers float64) backlog.Reading {
	r := used(consumers, usual)
	r.Ready, r.LeastReady = backlog.Known(20_000), backlog.Known(20_000)
	r.Undispatched, r.LeastUndispatched = backlog.Known(20_000), backlog.Known(20_000)
	return r
}

// covering is a capacity whose replicas show so much when they have work all the time.
func covering(share float64) *policy.LearnedCapacity {
	c := learned(100)
	c.Coverage = share
	return c
}
