// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
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

// scenario is a random input whose parts are all known.
func scenario(r *rand.Rand) (policy.Input, policy.State) {
	current := 1 + r.Int32N(40)
	in := input(current, reading(math.Floor(r.ExpFloat64()*5000), r.ExpFloat64()*500))
	in.Spec.MinReplicas = new(1 + r.Int32N(3))
	in.Spec.MaxReplicas = *in.Spec.MinReplicas + r.Int32N(60)
	in.Reading.At = in.Now.Add(-time.Duration(r.IntN(60)) * time.Second)
	in.Reading.Consumers = backlog.Known(float64(r.Int32N(current + 1)))
	in.Reading.SteadyConsumers, in.Reading.Blocked = r.IntN(2) == 0, r.IntN(10) == 0
	in.Reading.LeastUndispatched = backlog.Known(math.Floor(r.ExpFloat64() * 100))
	state := policy.State{DecidedAt: in.Now.Add(-10 * time.Second)}
	if r.IntN(3) > 0 {
		state.Capacity, state.Arrivals = learned(1+r.ExpFloat64()*100), arrivals(r.ExpFloat64()*500)
	}
	for range r.IntN(4) {
		state.Recommendations = append(state.Recommendations, policy.ReplicasAt{
			At: in.Now.Add(-time.Duration(r.IntN(200)) * time.Second), Replicas: 1 + r.Int32N(40),
		})
	}
	return in, state
}

// learnedState has every field set, as the tests of its encoding wrote it.
func learnedState(t testing.TB) policy.State {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "state-v1.json"))
	require.NoError(t, err)
	state, err := policy.DecodeState(string(text))
	require.NoError(t, err)
	return state
}

// decided is a decision with the state that it left and the reading that it rests on.
type decided struct {
	Decision policy.Decision
	State    policy.State
	Reading  backlog.Reading
}

// statusOf is the status after the one before, where nothing was written but it; d is nil where nothing was decided.
func statusOf(before v1alpha1.AutoscalingPolicyStatus, o plan.Observed, d *decided) v1alpha1.AutoscalingPolicyStatus {
	o.Policy = o.Policy.DeepCopy()
	o.Policy.Status = before
	if d == nil {
		return plan.Status(o, nil, policy.State{}, plan.Unwritten(o, plan.Actions{Violation: o.Violation}))
	}
	if o.Unknown == nil {
		o.Reading = &d.Reading
	}
	return plan.Status(o, &d.Decision, d.State, plan.Unwritten(o, plan.Actions{Violation: o.Violation}))
}

// conditionsOf are the conditions after those before; nil for those that the policy has.
func conditionsOf(before []metav1.Condition, o plan.Observed) []metav1.Condition {
	status := o.Policy.Status
	if before != nil {
		status.Conditions = before
	}
	return statusOf(status, o, nil).Conditions
}
