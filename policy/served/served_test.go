// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package served_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

func servedPolicy(change func(*v1alpha1.AutoscalingPolicy)) *v1alpha1.AutoscalingPolicy {
	p := &v1alpha1.AutoscalingPolicy{
		Spec: v1alpha1.AutoscalingPolicySpec{ScalingSpec: v1alpha1.ScalingSpec{MaxReplicas: 10}},
		Status: v1alpha1.AutoscalingPolicyStatus{
			DesiredReplicas: new(int32(7)),
			Decision:        &v1alpha1.Decision{Time: metav1.NewTime(time.Unix(1000, 0))},
		},
	}
	if change != nil {
		change(p)
	}
	return p
}

func TestADecisionWithoutSignalsCarriesItsOwnTime(t *testing.T) {
	number, err := served.Desired(servedPolicy(nil))
	require.NoError(t, err)
	require.Equal(t, served.Number{Replicas: 7, MeasuredAt: time.Unix(1000, 0)}, number)
}

func TestLastDesiredIsKnownWithoutAReading(t *testing.T) {
	p := servedPolicy(func(p *v1alpha1.AutoscalingPolicy) {
		p.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionBacklogKnown, Status: metav1.ConditionFalse, Message: "Pulsar is silent",
			LastTransitionTime: metav1.NewTime(time.Unix(2000, 0)),
		}}
	})
	_, err := served.Desired(p)
	require.EqualError(t, err, "Pulsar is silent")
	number, err := served.LastDesired(p)
	require.NoError(t, err)
	require.Equal(t,
		served.Number{
			Replicas: 7, MeasuredAt: time.Unix(1000, 0), HeldSince: time.Unix(2000, 0),
			Held: "Pulsar is silent",
		}, number)
}

func TestADecisionIsHeldSinceTheLastOneOnAPartialAnswer(t *testing.T) {
	for reason, want := range map[string]int64{
		v1alpha1.ReasonStale: 3000, v1alpha1.ReasonPulsarUnreachable: 3000,
		v1alpha1.ReasonUnsupported: 2000, // answers come, and no decision is made on any
	} {
		t.Run(reason, func(t *testing.T) {
			number, err := served.LastDesired(servedPolicy(func(p *v1alpha1.AutoscalingPolicy) {
				p.Status.Signals = &v1alpha1.Signals{MeasuredAt: metav1.NewTime(time.Unix(3000, 0))}
				p.Status.Conditions = []metav1.Condition{{
					Type: v1alpha1.ConditionBacklogKnown, Status: metav1.ConditionFalse, Reason: reason,
					LastTransitionTime: metav1.NewTime(time.Unix(2000, 0)),
				}}
			}))
			require.NoError(t, err)
			require.Equal(t, time.Unix(want, 0), number.HeldSince)
		})
	}
}

func TestLastDesiredWithoutADecision(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.AutoscalingPolicy)
		want   string
	}{
		"for a new policy": {
			func(p *v1alpha1.AutoscalingPolicy) { p.Status.DesiredReplicas = nil },
			"no decision yet: the policy is new",
		},
		"at no time": {
			func(p *v1alpha1.AutoscalingPolicy) { p.Status.Decision = nil },
			"no decision yet: the status does not say when",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := served.LastDesired(servedPolicy(tt.change))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestTheAgeOfADecisionIsBoundedByThePollInterval(t *testing.T) {
	for interval, most := range map[time.Duration]time.Duration{
		time.Second: 15 * time.Second, 10 * time.Second: 30 * time.Second, time.Minute: 3 * time.Minute,
	} {
		require.Equal(t, most, served.MaxAge(interval))
		require.Equal(t, 5*time.Minute+most+30*time.Second, served.MaxWrittenAge(interval))
	}
}

func TestKEDAWakesIfTheControllerDoesNot(t *testing.T) {
	woken := func(change func(*v1alpha1.AutoscalingPolicy)) *v1alpha1.AutoscalingPolicy {
		p := servedPolicy(func(p *v1alpha1.AutoscalingPolicy) {
			p.Status.Actuator = &v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorKEDA}
			p.Status.SpecReplicas = new(int32)
		})
		if change != nil {
			change(p)
		}
		return p
	}
	writesFailSince := func(since int64) func(*v1alpha1.AutoscalingPolicy) {
		return func(p *v1alpha1.AutoscalingPolicy) {
			p.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionAutoscalerApplied, Status: metav1.ConditionUnknown,
				Reason: v1alpha1.ReasonScaleFailed, LastTransitionTime: metav1.NewTime(time.Unix(since, 0)),
			}}
		}
	}
	tests := map[string]struct {
		change func(*v1alpha1.AutoscalingPolicy)
		after  time.Duration
		want   bool
	}{
		"the controller tries again":         {writesFailSince(1000), 9 * time.Second, true},
		"the controller failed before that":  {writesFailSince(995), 4 * time.Second, true},
		"the controller failed for too long": {writesFailSince(995), 5 * time.Second, false},
		"the controller is about to":         {nil, 9 * time.Second, true},
		"the controller did not":             {nil, 10 * time.Second, false},
		"it has": {
			func(p *v1alpha1.AutoscalingPolicy) { *p.Status.SpecReplicas = 7 },
			0, false,
		},
		"it has not seen the target": {
			func(p *v1alpha1.AutoscalingPolicy) { p.Status.SpecReplicas = nil },
			0, false,
		},
		"no work": {
			func(p *v1alpha1.AutoscalingPolicy) { *p.Status.DesiredReplicas = 0 },
			0, false,
		},
		"a policy in mode Recommend writes nothing": {func(
			p *v1alpha1.AutoscalingPolicy,
		) {
			p.Spec.Mode = v1alpha1.ModeRecommend
		}, 0, false},
		"another's ScaledObject is not its affair": {func(
			p *v1alpha1.AutoscalingPolicy,
		) {
			p.Status.Actuator.Type = v1alpha1.ActuatorHPA
		}, 0, false},
		"no actuator is chosen yet": {
			func(p *v1alpha1.AutoscalingPolicy) { p.Status.Actuator = nil }, 0,
			false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, served.BeingWoken(woken(tt.change), time.Unix(1000, 0).Add(tt.after)))
		})
	}
}
