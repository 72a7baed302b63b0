// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// A replica processes 61.3 messages a second. 11 replicas run, 412 messages a second arrive, and 30,120 wait.
func ExampleDecide() {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	in := policy.Input{
		Now: now,
		Spec: v1alpha1.AutoscalingPolicySpec{ScalingSpec: v1alpha1.ScalingSpec{
			MaxReplicas: 50, LatencyObjective: metav1.Duration{Duration: 30 * time.Second},
		}},
		CurrentReplicas: 11,
		PollInterval:    10 * time.Second,
		Reading: backlog.Reading{
			At: now, Type: backlog.Shared, Window: 10 * time.Second,
			Total: backlog.Known(30120), Ready: backlog.Known(30120), LeastReady: backlog.Known(30120),
			PublishRate: backlog.Known(412), ProcessRate: backlog.Known(550), Consumers: backlog.Known(11),
		},
	}
	before := policy.State{
		Capacity: &policy.LearnedCapacity{MessagesPerSecond: 61.3, Observations: 20, LearnedAt: now},
		Arrivals: &policy.Arrivals{Rate: 412},
	}

	decision, _ := policy.Decide(in, before)
	fmt.Println(decision.Replicas, "replicas:", decision.Equation)

	in.Unknown = fmt.Errorf("reading the broker: %w", backlog.ErrStale)
	decision, _ = policy.Decide(in, before)
	fmt.Println(decision.Replicas, "replicas:", decision.Hold.Reason)

	// Output:
	// 32 replicas: (412/s arriving + 18224 backlog / 12s) / 61.3/s per replica = 31.50
	// 11 replicas: BacklogUnknown
}
