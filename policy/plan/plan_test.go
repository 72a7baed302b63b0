// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// outcome is one of actuator HPA on a target of so many replicas that has had its autoscaler for a while.
func outcome(t testing.TB, current int32) plan.Observed {
	t.Helper()
	o := world()
	o.Actuator.Type = v1alpha1.ActuatorHPA
	o.Target.Replicas = &current
	o.Policy.Status.SpecReplicas = new(current)
	o.Autoscaler = applied(t, o)
	return o
}

// saying is the HorizontalPodAutoscaler's condition ScalingActive, as Kubernetes 1.36 words it.
func saying(o *plan.Observed, status corev1.ConditionStatus, reason, message string) {
	o.Autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: "SucceededGetScale"},
		{Type: autoscalingv2.ScalingActive, Status: status, Reason: reason, Message: message},
	}
}

func disabled(o *plan.Observed) {
	saying(o, corev1.ConditionFalse, "ScalingDisabled",
		"scaling is disabled since the replica count of the target is zero")
}

// atZero is what the status says of a target that the policy took to zero.
func atZero(o *plan.Observed) {
	o.Policy.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionScalingActive, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonScaledToZero,
	}}
}

func mayBeZero(o *plan.Observed) { o.Policy.Spec.MinReplicas = new(int32) }

func byHPAToZero(o *plan.Observed) { mayBeZero(o); o.Capabilities.ScaleToZero = true }

func byDirect(o *plan.Observed) {
	o.Actuator = v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: "spec.actuator says so"}
	o.Autoscaler = nil
}

// inWords says what a plan writes, in words.
func inWords(p plan.Actions) string {
	var words []string
	if p.RemoveAutoscaler {
		words = append(words, "remove")
	}
	if p.Autoscaler != nil {
		words = append(words, fmt.Sprintf("apply(min %d)", *p.Autoscaler.Spec.MinReplicas))
	}
	if p.StatusFirst {
		words = append(words, "status")
	}
	if p.Replicas != nil {
		words = append(words, fmt.Sprintf("replicas=%d", *p.Replicas))
	}
	return strings.Join(words, " ")
}

func TestNewPlanSaysWhatIsWritten(t *testing.T) {
	violated := func(o *plan.Observed) {
		o.Violation = &plan.Violation{
			Condition: v1alpha1.ConditionAutoscalerApplied,
			Reason:    v1alpha1.ReasonConflictingAutoscaler,
		}
	}
	mode := func(m v1alpha1.Mode) func(*plan.Observed) {
		return func(o *plan.Observed) { o.Policy.Spec.Mode = m }
	}
	frozen := func(o *plan.Observed) { o.Target.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused} }
	type changes []func(*plan.Observed)
	tests := map[string]struct {
		current, decided int32
		given            changes
		want             string
	}{
		"the autoscaler follows a raise":        {3, 7, nil, "apply(min 1)"},
		"the autoscaler follows a lower number": {7, 3, nil, "apply(min 1)"},
		"Direct raises": {
			3, 7,
			changes{byDirect},
			"remove replicas=7",
		},
		"Direct lowers": {
			7, 3,
			changes{byDirect},
			"remove replicas=3",
		},
		"Direct leaves what is right alone": {7, 7, changes{byDirect}, "remove"},
		"Direct goes to zero": {
			2, 0,
			changes{byDirect, mayBeZero},
			"remove replicas=0",
		},
		"Direct comes back from zero": {
			0, 4,
			changes{byDirect, mayBeZero},
			"remove replicas=4",
		},
		"Direct leaves a target alone that was switched off by hand": {0, 4, changes{byDirect}, "remove"},
		"the controller takes the last one where the autoscaler cannot": {
			1, 0,
			changes{mayBeZero},
			"apply(min 1) replicas=0",
		},
		"the controller takes several at once": {
			5, 0,
			changes{mayBeZero},
			"apply(min 1) replicas=0",
		},
		"the controller wakes all that are needed, after the status": {
			0, 4,
			changes{mayBeZero, disabled},
			"apply(min 1) status replicas=4",
		},
		"nothing is written at zero while nothing is needed": {
			0, 0,
			changes{mayBeZero, disabled},
			"apply(min 1)",
		},
		"an autoscaler that can takes the last one itself": {
			1, 0,
			changes{byHPAToZero},
			"apply(min 0)",
		},
		"an autoscaler that can wakes itself": {
			0, 4,
			changes{byHPAToZero},
			"apply(min 0)",
		},
		"an autoscaler that could, but found zero there, is helped": {
			0, 4,
			changes{byHPAToZero, disabled},
			"apply(min 0) status replicas=4",
		},
		"without an autoscaler the controller wakes": {
			0, 4,
			changes{byHPAToZero, func(o *plan.Observed) { o.Autoscaler = nil }},
			"apply(min 0) status replicas=4",
		},
		"a target that may not be without replicas keeps its autoscaler from it": {
			1, 1,
			changes{byHPAToZero, func(o *plan.Observed) { o.Target.NeverZero = true }},
			"apply(min 1)",
		},
		"nothing goes to a target that was switched off by hand": {0, 4, changes{disabled}, "apply(min 1)"},
		"one at zero whose minReplicas was raised comes back": {
			0, 1,
			changes{disabled, atZero},
			"apply(min 1) status replicas=1",
		},
		"a violation freezes":                                             {3, 7, changes{violated}, ""},
		"a violation freezes Direct":                                      {3, 7, changes{violated, byDirect}, ""},
		"a violation freezes at zero":                                     {0, 7, changes{violated, mayBeZero}, ""},
		"frozen within bounds it keeps its autoscaler":                    {3, 3, changes{frozen}, "apply(min 1)"},
		"frozen out of bounds it loses the autoscaler that would move it": {80, 80, changes{frozen}, "remove"},
		"a missing target is left alone": {
			3, 7,
			changes{func(o *plan.Observed) { o.Target = nil }},
			"",
		},
		"Recommend takes our autoscaler away": {
			3, 7,
			changes{mode(v1alpha1.ModeRecommend)},
			"remove",
		},
		"Recommend takes it away whatever is in the way": {
			3, 7,
			changes{mode(v1alpha1.ModeRecommend), violated},
			"remove",
		},
		"Recommend with Direct writes nothing": {
			3, 7,
			changes{mode(v1alpha1.ModeRecommend), byDirect},
			"remove",
		},
		"Off takes our autoscaler away": {
			3, 7,
			changes{mode(v1alpha1.ModePaused)},
			"remove",
		},
		"Off with Direct writes nothing": {
			0, 7,
			changes{mode(v1alpha1.ModePaused), byDirect, mayBeZero},
			"remove",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, test.current)
			for _, change := range test.given {
				change(&o)
			}
			require.Equal(t, test.want, inWords(plan.New(o, &policy.Decision{Replicas: test.decided})))
		})
	}
}

func TestAPlanWithoutADecisionKeepsReplicas(t *testing.T) {
	for name, change := range map[string]func(*plan.Observed){
		"HPA":    mayBeZero,
		"Direct": func(o *plan.Observed) { mayBeZero(o); byDirect(o) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, current := range []int32{0, 1, 5} {
				o := outcome(t, current)
				change(&o)
				require.Nil(t, plan.New(o, nil).Replicas)
			}
		})
	}
}

// anyOutcome is a random world in mode Auto.
func anyOutcome(t testing.TB, r *rand.Rand, current int32) plan.Observed {
	o := outcome(t, current)
	for _, change := range []func(*plan.Observed){
		byDirect, byHPAToZero, mayBeZero, atZero,
		func(o *plan.Observed) { o.Target.NeverZero = true },
		func(o *plan.Observed) { o.Autoscaler = nil },
		func(o *plan.Observed) {
			if o.Autoscaler != nil {
				disabled(o)
			}
		},
	} {
		if r.IntN(2) == 0 {
			change(&o)
		}
	}
	return o
}

func TestNothingButTheBoundsMovesReplicasOnWhatIsUnknown(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	reasons := []error{
		backlog.ErrUnreachable, backlog.ErrNoData, backlog.ErrTopicNotFound, backlog.ErrPartial, backlog.ErrForbidden,
		fmt.Errorf("%w: %w", backlog.ErrStale, backlog.ErrSubscriptionNotFound),
	}
	frozen := &policy.Hold{Reason: policy.HoldRolloutPaused}
	for range 5000 {
		in, state := randomInput(r)
		in.CurrentReplicas = r.Int32N(8)
		o := anyOutcome(t, r, in.CurrentReplicas)
		o.Policy.Spec.MaxReplicas = 1 + r.Int32N(8)
		held := in.CurrentReplicas
		switch kind := r.IntN(3); kind {
		case 0: // within the bounds, which need no measurement
			in.Unknown = reasons[r.IntN(len(reasons))]
			o.Unknown = in.Unknown
			least := policy.MinReplicas(o.Policy.Spec)
			if o.Target.NeverZero {
				least = max(1, least)
			}
			held = min(max(held, least), o.Policy.Spec.MaxReplicas)
		case 1:
			o.Target.Frozen = frozen
		case 2:
			o.Violation = &plan.Violation{Condition: v1alpha1.ConditionAutoscalerApplied}
		}
		in.Spec, in.NeverZero, in.Frozen = o.Policy.Spec, o.Target.NeverZero, plan.Frozen(o)
		decision, _ := policy.Decide(in, state)
		actions := plan.New(o, &decision)
		if actions.Replicas == nil {
			continue
		}
		require.Equal(t, held, *actions.Replicas, "of %d, unknown %v, frozen %v, violation %v", in.CurrentReplicas,
			in.Unknown,
			in.Frozen, o.Violation)
	}
}

func TestASubscriptionThatIsGoneAtZeroIsMadeAgainByOneReplica(t *testing.T) {
	for name, change := range map[string]func(*plan.Observed){
		"HPA": disabled, "HPA that goes to zero itself, and gets no metric": byHPAToZero, "Direct": byDirect,
	} {
		t.Run(name, func(t *testing.T) {
			for current, want := range map[int32]string{0: "replicas=1", 1: ""} {
				o := outcome(t, current)
				mayBeZero(&o)
				change(&o)
				o.Unknown = fmt.Errorf("%w: in", backlog.ErrSubscriptionNotFound)
				in := input(current, reading(0, 0))
				in.Spec.MinReplicas = new(int32)
				in.Unknown = o.Unknown
				decision, _ := policy.Decide(in, policy.State{})
				words := inWords(plan.New(o, &decision))
				if want == "" {
					require.NotContains(t, words, "replicas=")
				} else {
					require.Contains(t, words, want)
				}
			}
		})
	}
}

func TestAbilitiesChooseWhoWrites(t *testing.T) {
	tests := map[string]struct {
		abilities plan.Capabilities
		wanted    v1alpha1.Actuator
		scaling   plan.Scaling
		want      v1alpha1.Actuator
		because   string
	}{
		"Auto is the autoscaler where the adapter is asked": {
			plan.Capabilities{},
			v1alpha1.ActuatorAuto,
			plan.BySubresource, v1alpha1.ActuatorHPA, "served by the adapter",
		},
		"an absent field is Auto": {
			plan.Capabilities{},
			"", plan.BySubresource, v1alpha1.ActuatorHPA,
			"served by the adapter",
		},
		"Auto is Direct where another adapter serves the metrics": {plan.Capabilities{MetricsAPIHolder: "Service monitoring/prometheus-adapter"}, v1alpha1.ActuatorAuto, plan.BySubresource, v1alpha1.ActuatorDirect, "served by Service monitoring/prometheus-adapter"},
		"Auto is Direct where no APIService serves them": {
			plan.Capabilities{NoMetricsAPI: true},
			v1alpha1.ActuatorAuto,
			plan.BySubresource, v1alpha1.ActuatorDirect, "no APIService serves custom.metrics.k8s.io",
		},
		"Auto is Direct for what a worker runs": {
			plan.Capabilities{},
			v1alpha1.ActuatorAuto, plan.ByWorker,
			v1alpha1.ActuatorDirect, "function worker",
		},
		"HPA is taken at its word": {
			plan.Capabilities{},
			v1alpha1.ActuatorHPA, plan.BySubresource,
			v1alpha1.ActuatorHPA, "spec.actuator says so",
		},
		"HPA that cannot work is warned of": {
			plan.Capabilities{MetricsAPIHolder: "Service a/b"},
			v1alpha1.ActuatorHPA, plan.BySubresource, v1alpha1.ActuatorHPA,
			"although custom.metrics.k8s.io is served by Service a/b and not by the adapter: use Direct",
		},
		"HPA without a metrics API is warned of": {
			plan.Capabilities{NoMetricsAPI: true},
			v1alpha1.ActuatorHPA,
			plan.BySubresource, v1alpha1.ActuatorHPA, "apply the adapter's APIService, or use Direct",
		},
		"Direct is taken at its word": {
			plan.Capabilities{},
			v1alpha1.ActuatorDirect,
			plan.BySubresource, v1alpha1.ActuatorDirect, "spec.actuator says so",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			chosen := test.abilities.Choose(test.wanted, test.scaling)
			require.Equal(t, test.want, chosen.Type)
			require.Contains(t, chosen.Reason, test.because)
		})
	}
}

func TestTheAutoscalerMayGoWhereTheClusterLetsIt(t *testing.T) {
	tests := map[string]struct {
		given     []func(*plan.Observed)
		least     int32
		ref, kind string
	}{
		"to one where the cluster takes no zero": {
			[]func(*plan.Observed){mayBeZero},
			1, "compute.functionmesh.io/v1alpha1",
			"Function",
		},
		"to zero where it does": {
			[]func(*plan.Observed){byHPAToZero},
			0,
			"compute.functionmesh.io/v1alpha1", "Function",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 1)
			for _, change := range test.given {
				change(&o)
			}
			live, wanted := applied(t, o), plan.HorizontalPodAutoscaler(o.Policy, o.Target,
				o.Capabilities)
			require.Equal(t, test.least, *live.Spec.MinReplicas)
			require.Equal(t, test.ref, live.Spec.ScaleTargetRef.APIVersion)
			require.Equal(t, test.kind, live.Spec.ScaleTargetRef.Kind)
			require.Equal(t, "resize", live.Spec.ScaleTargetRef.Name)
			current, err := plan.AutoscalerIsCurrent(live, wanted)
			require.NoError(t, err)
			require.True(t, current, "what the server keeps is not applied again and again")
			live.Spec.MinReplicas = new(int32(1) - test.least)
			current, err = plan.AutoscalerIsCurrent(live, wanted)
			require.NoError(t, err)
			require.False(t, current)
		})
	}
}
