// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

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
)

// outcome is one of actuator HPA on a target of so many replicas that has had its autoscaler for a while.
func outcome(t testing.TB, current int32) policy.Outcome {
	t.Helper()
	o := policy.Outcome{Now: noon(), World: world(), Actuator: v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorHPA}}
	o.World.Target.Replicas = &current
	o.World.Policy.Status.CurrentReplicas = new(current)
	o.World.Autoscaler = applied(t, o.World)
	return o
}

// saying is the HorizontalPodAutoscaler's condition ScalingActive, as Kubernetes 1.36 words it.
func saying(o *policy.Outcome, status corev1.ConditionStatus, reason, message string) {
	o.World.Autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: "SucceededGetScale"},
		{Type: autoscalingv2.ScalingActive, Status: status, Reason: reason, Message: message},
	}
}

func disabled(o *policy.Outcome) {
	saying(o, corev1.ConditionFalse, "ScalingDisabled",
		"scaling is disabled since the replica count of the target is zero")
}

// atZero is what the status says of a target that the policy took to zero.
func atZero(o *policy.Outcome) {
	o.World.Policy.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionScalingActive, Status: metav1.ConditionTrue, Reason: policy.ReasonAtZero,
	}}
}

func mayBeZero(o *policy.Outcome) { o.World.Policy.Spec.MinReplicas = new(int32) }

func byHPAToZero(o *policy.Outcome) { mayBeZero(o); o.World.Abilities.ScaleToZero = true }

func byDirect(o *policy.Outcome) {
	o.Actuator = v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: "spec.actuator says so"}
	o.World.Autoscaler = nil
}

// handedOn is a target without a scale subresource, of which the policy holds so many.
func handedOn(held int32) func(*policy.Outcome) {
	return func(o *policy.Outcome) {
		o.World.Target.Scaling = policy.ByMesh
		o.World.Policy.Spec.Replicas = &held
	}
}

func seen(replicas int32) func(*policy.Outcome) {
	return func(o *policy.Outcome) { o.World.Policy.Status.CurrentReplicas = &replicas }
}

// inWords says what a plan writes, in words.
func inWords(p policy.Plan) string {
	var words []string
	if p.RemoveAutoscaler {
		words = append(words, "remove")
	}
	if p.OwnReplicas != nil {
		words = append(words, fmt.Sprintf("own=%d", *p.OwnReplicas))
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
	violated := func(o *policy.Outcome) {
		o.Violation = &policy.Violation{Condition: v1alpha1.ConditionAutoscalerApplied, Reason: policy.ReasonRivalAutoscaler}
	}
	mode := func(m v1alpha1.Mode) func(*policy.Outcome) {
		return func(o *policy.Outcome) { o.World.Policy.Spec.Mode = m }
	}
	frozen := func(o *policy.Outcome) { o.World.Target.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused} }
	type changes []func(*policy.Outcome)
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
			changes{byHPAToZero, func(o *policy.Outcome) { o.World.Autoscaler = nil }},
			"apply(min 0) status replicas=4",
		},
		"a target that may not be without replicas keeps its autoscaler from it": {
			1, 1,
			changes{byHPAToZero, func(o *policy.Outcome) { o.World.Target.NeverZero = true }},
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
		"so does what the autoscaler scales through the policy": {
			80, 80,
			changes{frozen, handedOn(80)},
			"remove",
		},
		"a missing target is left alone": {
			3, 7,
			changes{func(o *policy.Outcome) { o.World.Target = nil }},
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
			changes{mode(v1alpha1.ModeOff)},
			"remove",
		},
		"Off with Direct writes nothing": {
			0, 7,
			changes{mode(v1alpha1.ModeOff), byDirect, mayBeZero},
			"remove",
		},

		"the policy takes over what runs before it has an autoscaler": {
			3, 7,
			changes{handedOn(9), func(o *policy.Outcome) { o.World.Autoscaler = nil }},
			"own=3 apply(min 1)",
		},
		"the policy takes over what runs when it holds nothing yet": {
			3, 7,
			changes{handedOn(0), func(o *policy.Outcome) { o.World.Policy.Spec.Replicas = nil }},
			"own=3 apply(min 1)",
		},
		"what the autoscaler wrote to the policy is handed on": {
			3, 7,
			changes{handedOn(7)},
			"apply(min 1) replicas=7",
		},
		"what was handed on is not written again":               {7, 7, changes{handedOn(7), seen(3)}, "apply(min 1)"},
		"a decision that the autoscaler has not followed waits": {3, 7, changes{handedOn(3)}, "apply(min 1)"},
		"what somebody wrote to the target is taken over": {
			5, 7,
			changes{handedOn(3), seen(3)},
			"own=5 apply(min 1)",
		},
		"where both were changed the autoscaler's number goes on": {
			5, 7,
			changes{handedOn(7), seen(3)},
			"apply(min 1) replicas=7",
		},
		"a target that comes back is taken as it is": {
			1, 7,
			changes{handedOn(9), func(o *policy.Outcome) { o.World.Policy.Status.CurrentReplicas = nil }},
			"own=1 apply(min 1)",
		},
		"a handed-on target goes to zero with its policy": {
			2, 0,
			changes{handedOn(2), mayBeZero},
			"own=0 apply(min 1) replicas=0",
		},
		"a handed-on target wakes with its policy": {
			0, 4,
			changes{handedOn(0), mayBeZero, disabled},
			"own=4 apply(min 1) status replicas=4",
		},
		"a handed-on target at zero waits for the autoscaler that can": {
			0, 4,
			changes{handedOn(0), byHPAToZero},
			"apply(min 0)",
		},
		"a handed-on target that was switched off stays off": {
			0, 4,
			changes{handedOn(3), seen(3), disabled},
			"own=0 apply(min 1)",
		},
		"Direct writes to a handed-on target itself": {
			3, 7,
			changes{handedOn(9), byDirect},
			"remove replicas=7",
		},
		"a violation freezes a handed-on target": {3, 7, changes{handedOn(9), violated}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, test.current)
			for _, change := range test.given {
				change(&o)
			}
			require.Equal(t, test.want, inWords(policy.NewPlan(o, &policy.Decision{Replicas: test.decided})))
		})
	}
}

func TestAPlanWithoutADecisionKeepsReplicas(t *testing.T) {
	for name, change := range map[string]func(*policy.Outcome){
		"HPA":    mayBeZero,
		"Direct": func(o *policy.Outcome) { mayBeZero(o); byDirect(o) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, current := range []int32{0, 1, 5} {
				o := outcome(t, current)
				change(&o)
				require.Nil(t, policy.NewPlan(o, nil).Replicas)
			}
		})
	}
}

// anyOutcome is a random world in mode Auto.
func anyOutcome(t testing.TB, r *rand.Rand, current int32) policy.Outcome {
	o := outcome(t, current)
	for _, change := range []func(*policy.Outcome){
		byDirect, byHPAToZero, mayBeZero, atZero, handedOn(r.Int32N(8)), seen(r.Int32N(8)),
		func(o *policy.Outcome) { o.World.Target.NeverZero = true },
		func(o *policy.Outcome) { o.World.Autoscaler = nil },
		func(o *policy.Outcome) {
			if o.World.Autoscaler != nil {
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
		in, state := scenario(r)
		in.CurrentReplicas = r.Int32N(8)
		o := anyOutcome(t, r, in.CurrentReplicas)
		o.World.Policy.Spec.MaxReplicas = 1 + r.Int32N(8)
		held := in.CurrentReplicas
		switch kind := r.IntN(3); kind {
		case 0: // within the bounds, which need no measurement
			in.Unknown = reasons[r.IntN(len(reasons))]
			o.Unknown = in.Unknown
			least := policy.LeastReplicas(o.World.Policy.Spec)
			if o.World.Target.NeverZero {
				least = max(1, least)
			}
			held = min(max(held, least), o.World.Policy.Spec.MaxReplicas)
		case 1:
			o.World.Target.Frozen = frozen
		case 2:
			o.Violation = &policy.Violation{Condition: v1alpha1.ConditionAutoscalerApplied}
		}
		in.Spec, in.NeverZero, in.Frozen = o.World.Policy.Spec, o.World.Target.NeverZero, policy.Frozen(o.World)
		decision, _ := policy.Decide(in, state)
		plan := policy.NewPlan(o, &decision)
		if plan.Replicas == nil ||
			(plan.Autoscaler != nil && o.World.Target.Scaling != policy.BySubresource &&
				*plan.Replicas == *o.World.Policy.Spec.Replicas) {
			continue // what our autoscaler wrote to the policy, which obeys the metric, is handed on
		}
		require.Equal(t, held, *plan.Replicas, "of %d, unknown %v, frozen %v, violation %v", in.CurrentReplicas, in.Unknown,
			in.Frozen, o.Violation)
	}
}

func TestASubscriptionThatIsGoneAtZeroIsMadeAgainByOneReplica(t *testing.T) {
	for name, change := range map[string]func(*policy.Outcome){
		"HPA": disabled, "HPA that goes to zero itself, and gets no metric": byHPAToZero, "Direct": byDirect,
	} {
		t.Run(name, func(t *testing.T) {
			for current, want := range map[int32]string{0: "replicas=1", 1: ""} {
				o := outcome(t, current)
				mayBeZero(&o)
				change(&o)
				o.Unknown = fmt.Errorf("%w: in", backlog.ErrSubscriptionNotFound)
				in := idle(current, 0)
				in.Unknown = o.Unknown
				decision, _ := policy.Decide(in, policy.State{})
				words := inWords(policy.NewPlan(o, &decision))
				if want == "" {
					require.NotContains(t, words, "replicas=")
				} else {
					require.Contains(t, words, want)
				}
			}
		})
	}
}

func TestFrozenReplicasStayWhateverTheBacklogAndTheBounds(t *testing.T) {
	for name, current := range map[string]int32{"below minReplicas": 1, "within": 5, "above maxReplicas": 80} {
		t.Run(name, func(t *testing.T) {
			in := input(current, reading(1e6, 900))
			in.Spec.MinReplicas = new(int32(3))
			in.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused, Message: "the rollout is paused"}
			decision, _ := policy.Decide(in, policy.State{Capacity: learned(100), Arrivals: arrivals(900)})
			require.Equal(t, current, decision.Replicas)
			require.Equal(t, in.Frozen, decision.Hold)
			require.Empty(t, decision.CappedBy)
			require.NotEmpty(t, decision.Equation, "what would be done is shown")
			in.Unknown = backlog.ErrUnreachable
			decision, _ = policy.Decide(in, policy.State{})
			require.Equal(t, current, decision.Replicas)
		})
	}
}

func TestWhatMayNotBeWithoutReplicasKeepsOne(t *testing.T) {
	require.Equal(t, -1, wentToZero(func(_ int, in *policy.Input) { in.NeverZero = true }))
	in := idle(0, 0)
	in.NeverZero = true
	decision, _ := policy.Decide(in, policy.State{})
	require.Equal(t, int32(1), decision.Replicas, "it is woken to find its work")
}

func TestAKnownRestartOfAllReplicasIsMindedFromTheFirstChange(t *testing.T) {
	in := input(10, reading(0, 750))
	in.Reading.Consumers, in.Reading.SteadyConsumers = backlog.Known(10), true
	// 8 to 9 are enough: worth it, unless all restart
	state := policy.State{Capacity: learned(100), Arrivals: arrivals(750)}
	gentle, _ := policy.Decide(in, state)
	in.Restarts = true
	harsh, _ := policy.Decide(in, state)
	require.Equal(t, int32(10), harsh.Replicas)
	require.Equal(t, policy.HoldSmallChange, harsh.Hold.Reason)
	require.Contains(t, harsh.Hold.Message, "less than 30 %")
	if gentle.Hold != nil {
		require.NotContains(t, gentle.Hold.Message, "less than 30 %")
	}
}

func TestAbilitiesChooseWhoWrites(t *testing.T) {
	tests := map[string]struct {
		abilities policy.Abilities
		wanted    v1alpha1.Actuator
		scaling   policy.Scaling
		want      v1alpha1.Actuator
		because   string
	}{
		"Auto is the autoscaler where the adapter is asked": {
			policy.Abilities{},
			v1alpha1.ActuatorAuto,
			policy.BySubresource, v1alpha1.ActuatorHPA, "served by the adapter",
		},
		"an absent field is Auto": {
			policy.Abilities{},
			"", policy.ByMesh, v1alpha1.ActuatorHPA,
			"served by the adapter",
		},
		"Auto is Direct where somebody else serves the metrics": {policy.Abilities{MetricsAPIHolder: "Service monitoring/prometheus-adapter"}, v1alpha1.ActuatorAuto, policy.BySubresource, v1alpha1.ActuatorDirect, "served by Service monitoring/prometheus-adapter"},
		"Auto is Direct where nobody serves them": {
			policy.Abilities{NoMetricsAPI: true},
			v1alpha1.ActuatorAuto,
			policy.BySubresource, v1alpha1.ActuatorDirect, "nobody serves custom.metrics.k8s.io",
		},
		"Auto is Direct for what a worker runs": {
			policy.Abilities{},
			v1alpha1.ActuatorAuto, policy.ByWorker,
			v1alpha1.ActuatorDirect, "function worker",
		},
		"HPA is taken at its word": {
			policy.Abilities{},
			v1alpha1.ActuatorHPA, policy.ByWorker,
			v1alpha1.ActuatorHPA, "spec.actuator says so",
		},
		"HPA that cannot work is warned of": {
			policy.Abilities{MetricsAPIHolder: "Service a/b"},
			v1alpha1.ActuatorHPA, policy.BySubresource, v1alpha1.ActuatorHPA,
			"although custom.metrics.k8s.io is served by Service a/b and not by the adapter: use Direct",
		},
		"HPA without a metrics API is warned of": {
			policy.Abilities{NoMetricsAPI: true},
			v1alpha1.ActuatorHPA,
			policy.BySubresource, v1alpha1.ActuatorHPA, "apply the adapter's APIService, or use Direct",
		},
		"Direct is taken at its word": {
			policy.Abilities{},
			v1alpha1.ActuatorDirect,
			policy.BySubresource, v1alpha1.ActuatorDirect, "spec.actuator says so",
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
		given     []func(*policy.Outcome)
		least     int32
		ref, kind string
	}{
		"to one where the cluster takes no zero": {
			[]func(*policy.Outcome){mayBeZero},
			1, "compute.functionmesh.io/v1alpha1",
			"Function",
		},
		"to zero where it does": {
			[]func(*policy.Outcome){byHPAToZero},
			0,
			"compute.functionmesh.io/v1alpha1", "Function",
		},
		"through the policy for a mesh component": {
			[]func(*policy.Outcome){byHPAToZero, handedOn(1)},
			0,
			"pulsar-autoscaler.io/v1alpha1", "AutoscalingPolicy",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 1)
			for _, change := range test.given {
				change(&o)
			}
			live, wanted := applied(t, o.World), policy.HorizontalPodAutoscaler(o.World.Policy, o.World.Target,
				o.World.Abilities)
			require.Equal(t, test.least, *live.Spec.MinReplicas)
			require.Equal(t, test.ref, live.Spec.ScaleTargetRef.APIVersion)
			require.Equal(t, test.kind, live.Spec.ScaleTargetRef.Kind)
			require.Equal(t, "resize", live.Spec.ScaleTargetRef.Name)
			current, err := policy.AutoscalerIsCurrent(live, wanted)
			require.NoError(t, err)
			require.True(t, current, "what the server keeps is not applied again and again")
			live.Spec.MinReplicas = new(int32(1) - test.least)
			current, err = policy.AutoscalerIsCurrent(live, wanted)
			require.NoError(t, err)
			require.False(t, current)
		})
	}
}
