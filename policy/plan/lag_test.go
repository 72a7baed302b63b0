// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// lagging is an observation of a target with 3 replicas, of which 5 are decided since some time.
func lagging(since time.Duration) plan.Observed {
	o := world()
	o.Policy.Status.DesiredReplicas = new(int32(5))
	o.Unset = plan.Unset{Since: o.Now.Add(-since), Replicas: 3}
	return o
}

func TestAnAutoscalerThatLags(t *testing.T) {
	const auto, hpa = v1alpha1.ActuatorAuto, v1alpha1.ActuatorHPA
	const keda, direct = v1alpha1.ActuatorKEDA, v1alpha1.ActuatorDirect
	past := func(by v1alpha1.Actuator, lag time.Duration) v1alpha1.ActuatorStatus {
		return v1alpha1.ActuatorStatus{
			Type: by, Lag: &metav1.Duration{Duration: lag}, LagMeasuredAt: &metav1.Time{Time: noon().Add(-59 * time.Minute)},
		}
	}
	moved := func(returns time.Duration) v1alpha1.ActuatorStatus {
		last := past(direct, time.Minute)
		last.DirectUntil = &metav1.Time{Time: noon().Add(returns)}
		return last
	}
	old := past(hpa, time.Minute)
	old.LagMeasuredAt = &metav1.Time{Time: noon().Add(-time.Hour)}
	tests := map[string]struct {
		wanted   v1alpha1.Actuator
		last     v1alpha1.ActuatorStatus
		since    time.Duration
		replicas int32
		want     v1alpha1.Actuator
		lag      time.Duration // 0 for none
	}{
		"late again": {auto, past(hpa, 16*time.Second), 31 * time.Second, 3, direct, 31 * time.Second},
		"late once":  {auto, past(hpa, 15*time.Second), 59 * time.Second, 3, hpa, 15 * time.Second},

		"two syncs are normal":                     {auto, past(hpa, time.Minute), 30 * time.Second, 3, hpa, time.Minute},
		"once, if it takes four syncs":             {auto, past(hpa, 0), time.Minute, 3, direct, time.Minute},
		"no value is Auto":                         {"", past(hpa, 0), time.Minute, 3, direct, time.Minute},
		"a lag is forgotten after an hour":         {auto, old, 0, 3, hpa, 0},
		"an HPA that the spec names stays":         {hpa, past(hpa, 0), time.Hour, 3, hpa, 0},
		"so does KEDA":                             {keda, past(keda, 0), time.Hour, 3, keda, 0},
		"the time until it set the number":         {auto, past(hpa, 0), 20 * time.Second, 5, hpa, 20 * time.Second},
		"one that is late but has set it stays":    {auto, past(hpa, 0), 40 * time.Second, 5, hpa, 40 * time.Second},
		"KEDA is measured too":                     {keda, past(keda, 0), 40 * time.Second, 5, keda, 40 * time.Second},
		"half of a longer lag stays":               {hpa, past(hpa, time.Minute), 10 * time.Second, 5, hpa, 30 * time.Second},
		"a lag is at most 5 minutes":               {hpa, past(hpa, 0), time.Hour, 5, hpa, 5 * time.Minute},
		"another number is no measurement":         {auto, past(hpa, time.Minute), time.Hour, 4, hpa, time.Minute},
		"nor is that of another actuator":          {hpa, past(keda, time.Minute), 0, 3, hpa, 0},
		"the controller wakes replicas":            {auto, past(hpa, 0), time.Hour, 0, hpa, 0},
		"Direct stays until its time":              {auto, moved(time.Second), 0, 3, direct, time.Minute},
		"then the HPA is created":                  {auto, moved(0), 0, 3, hpa, 0},
		"a change of the spec ends it":             {hpa, moved(time.Hour), 0, 3, hpa, 0},
		"Direct that the spec names has no return": {direct, moved(time.Hour), time.Hour, 3, direct, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := lagging(tt.since)
			o.Policy.Spec.Actuator, o.Policy.Status.Actuator, o.Target.Replicas = tt.wanted, &tt.last, &tt.replicas
			chosen := plan.Choose(o.Subject, o.Autoscalers, o.Unset)
			require.Equal(t, tt.want, chosen.Type)
			var lag time.Duration
			if chosen.Lag != nil {
				lag = chosen.Lag.Duration
			}
			require.Equal(t, tt.lag, lag)
			require.Equal(t, tt.want == direct && tt.wanted != direct, chosen.DirectUntil != nil)
		})
	}
}

func TestAnAutoscalerDoesNotLagBehindANumberThatIsNotInTheStatus(t *testing.T) {
	o := lagging(time.Hour)
	o.Policy.Status.DesiredReplicas = new(int32(3))
	require.Equal(t, v1alpha1.ActuatorHPA, plan.Choose(o.Subject, o.Autoscalers, o.Unset).Type)
}

func TestPoliciesReturnToTheirAutoscalersOneByOne(t *testing.T) {
	returns := map[time.Duration]bool{}
	for i := range 100 {
		o := lagging(time.Minute)
		o.Policy.UID = types.UID(fmt.Sprint("uid-", i))
		chosen := plan.Choose(o.Subject, o.Autoscalers, o.Unset)
		after := chosen.DirectUntil.Sub(o.Now)
		require.GreaterOrEqual(t, after, time.Hour)
		require.Less(t, after, 2*time.Hour)
		returns[after.Truncate(time.Minute)] = true
		require.Contains(t, chosen.Reason, "did not set the decided replicas for 1m0s, so Auto chooses Direct until 20")
		require.Contains(t, chosen.Reason, "--kube-api-qps and --concurrent-horizontal-pod-autoscaler-syncs")
	}
	require.Greater(t, len(returns), 30, "within the hour")
}

func TestAnAutoscalerThatIsNotReadLags(t *testing.T) {
	const auto, hpa = v1alpha1.ActuatorAuto, v1alpha1.ActuatorHPA
	tests := map[string]struct {
		wanted v1alpha1.Actuator
		age    time.Duration
		change func(*autoscalingv2.HorizontalPodAutoscaler)
		want   v1alpha1.Actuator
		lag    time.Duration
	}{
		"for four syncs":                {auto, time.Minute, nil, v1alpha1.ActuatorDirect, time.Minute},
		"not yet":                       {auto, 59 * time.Second, nil, hpa, 0},
		"an HPA that the spec names":    {hpa, time.Hour, nil, hpa, 0},
		"one that was read, and failed": {auto, time.Hour, withCondition, hpa, 0},
		"of another policy": {auto, time.Hour, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.OwnerReferences[0].UID = "another"
		}, hpa, 0},
		"of unknown age": {auto, time.Hour, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.CreationTimestamp = metav1.Time{}
		}, hpa, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := world()
			o.Policy.Spec.Actuator = tt.wanted
			o.Autoscaler = plan.HorizontalPodAutoscaler(o.Policy, o.Target)
			o.Autoscaler.CreationTimestamp = metav1.NewTime(o.Now.Add(-tt.age))
			if tt.change != nil {
				tt.change(o.Autoscaler)
			}
			chosen := plan.Choose(o.Subject, o.Autoscalers, plan.Unset{})
			require.Equal(t, tt.want, chosen.Type)
			if tt.lag == 0 {
				require.Nil(t, chosen.Lag)
				return
			}
			require.Equal(t, tt.lag, chosen.Lag.Duration)
			require.Contains(t, chosen.Reason, "was not read for 1m0s after its creation, so Auto chooses Direct until 20")
		})
	}
}

func withCondition(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.AbleToScale}}
}

func TestAutoChoosesNoAutoscalerWhileManyLag(t *testing.T) {
	for wanted, want := range map[v1alpha1.Actuator]v1alpha1.Actuator{
		v1alpha1.ActuatorAuto: v1alpha1.ActuatorDirect, v1alpha1.ActuatorHPA: v1alpha1.ActuatorHPA,
		v1alpha1.ActuatorKEDA: v1alpha1.ActuatorKEDA,
	} {
		o := world()
		o.Policy.Spec.Actuator, o.ManyLag = wanted, true
		chosen := plan.Choose(o.Subject, o.Autoscalers, plan.Unset{})
		require.Equal(t, want, chosen.Type)
		require.Nil(t, chosen.Lag, "its own is unknown")
		if want == v1alpha1.ActuatorDirect {
			require.True(t, chosen.DirectUntil.After(o.Now.Add(time.Hour-time.Second)))
			require.Contains(t, chosen.Reason, "would lag as 10 others did within 5m0s, so Auto chooses Direct until 20")
		}
	}
}

// There is one writer: the autoscaler is deleted with the change to Direct, and Direct writes nothing after it.
func TestTheChangeFromALaggingAutoscalerAndBack(t *testing.T) {
	o := lagging(time.Minute)
	o.Autoscaler = applied(t, o)
	o.Actuator = plan.Choose(o.Subject, o.Autoscalers, o.Unset)
	require.Equal(t, "remove replicas=5", inWords(plan.New(o, &policy.Decision{Replicas: 5})))
	require.Zero(t, plan.Input(o).Lag, "the controller does not lag")

	o.Policy.Status.Actuator, o.Autoscaler, o.Unset = &o.Actuator, nil, plan.Unset{}
	o.Now = o.Actuator.DirectUntil.Time
	o.Actuator = plan.Choose(o.Subject, o.Autoscalers, o.Unset)
	require.Equal(t, "apply(min 1)", inWords(plan.New(o, &policy.Decision{Replicas: 7})))
	o.Actuator.Lag = &metav1.Duration{Duration: 40 * time.Second}
	require.Equal(t, 40*time.Second, plan.Input(o).Lag)
}
