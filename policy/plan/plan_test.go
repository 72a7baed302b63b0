// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// inWords describes the writes of a plan.
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

func TestNewPlansWrites(t *testing.T) {
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
	shown := func(desired, replicas int32) func(*plan.Observed) {
		return func(o *plan.Observed) {
			o.Policy.Status.DesiredReplicas, o.Policy.Status.SpecReplicas = &desired, &replicas
		}
	}
	type changes []func(*plan.Observed)
	tests := map[string]struct {
		current, decided int32
		given            changes
		want             string
	}{
		"the autoscaler follows a raise":                         {3, 7, nil, "apply(min 1)"},
		"the autoscaler follows a lower number":                  {7, 3, nil, "apply(min 1)"},
		"Direct raises":                                          {3, 7, changes{byDirect}, "remove replicas=7"},
		"Direct lowers":                                          {7, 3, changes{byDirect}, "remove replicas=3"},
		"Direct writes nothing if the number is right":           {7, 7, changes{byDirect}, "remove"},
		"Direct scales to zero":                                  {2, 0, changes{byDirect, mayBeZero}, "remove replicas=0"},
		"Direct wakes from zero":                                 {0, 4, changes{byDirect, mayBeZero}, "remove replicas=4"},
		"Direct writes nothing to a target switched off by hand": {0, 4, changes{byDirect}, "remove"},
		"the controller removes the last":                        {1, 0, changes{mayBeZero}, "apply(min 1) replicas=0"},
		"the controller removes several at once":                 {5, 0, changes{mayBeZero}, "apply(min 1) replicas=0"},
		"the controller wakes all that are needed, after the status": {
			0, 4,
			changes{mayBeZero, disabled},
			"apply(min 1) status replicas=4",
		},
		"no write at zero while none is needed": {0, 0, changes{mayBeZero, disabled}, "apply(min 1)"},
		"an autoscaler that does not report zero yet wakes nothing": {
			0, 4,
			changes{mayBeZero},
			"apply(min 1) status replicas=4",
		},
		"without an autoscaler the controller wakes": {
			0, 4,
			changes{mayBeZero, func(o *plan.Observed) { o.Autoscaler = nil }},
			"apply(min 1) status replicas=4",
		},
		"no write to a target that was switched off by hand": {0, 4, changes{disabled}, "apply(min 1)"},
		"one at zero with a raised minReplicas wakes": {
			0, 1,
			changes{disabled, atZero},
			"apply(min 1) status replicas=1",
		},
		"one at zero of which the condition has another reason wakes": {
			0, 1,
			changes{disabled, shown(5, 0)},
			"apply(min 1) status replicas=1",
		},
		"one that the status does not show at zero yet wakes": {
			0, 1,
			changes{disabled, shown(0, 3)},
			"apply(min 1) status replicas=1",
		},
		"no write to one switched off since the last status": {0, 4, changes{disabled, shown(3, 3)}, "apply(min 1)"},
		"a problem freezes":                            {3, 7, changes{violated}, ""},
		"a problem freezes Direct":                     {3, 7, changes{violated, byDirect}, ""},
		"a problem freezes at zero":                    {0, 7, changes{violated, mayBeZero}, ""},
		"frozen within bounds it keeps its autoscaler": {3, 3, changes{frozen}, "apply(min 1)"},
		"frozen out of bounds it has no autoscaler":    {80, 80, changes{frozen}, "remove"},
		"no write to a missing target": {
			3, 7,
			changes{func(o *plan.Observed) { o.Target = nil }},
			"",
		},
		"Recommend deletes our autoscaler":       {3, 7, changes{mode(v1alpha1.ModeRecommend)}, "remove"},
		"Recommend deletes it despite a problem": {3, 7, changes{mode(v1alpha1.ModeRecommend), violated}, "remove"},
		"Recommend with Direct writes nothing":   {3, 7, changes{mode(v1alpha1.ModeRecommend), byDirect}, "remove"},
		"Paused deletes our autoscaler":          {3, 7, changes{mode(v1alpha1.ModePaused)}, "remove"},
		"Paused with Direct writes nothing":      {0, 7, changes{mode(v1alpha1.ModePaused), byDirect, mayBeZero}, "remove"},
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

func TestATargetThatAlwaysNeedsAReplicaHasNoAdviceAboutZero(t *testing.T) {
	for _, least := range []int32{0, 1} {
		o := outcome(t, 0)
		o.Target.NeverZero, o.Policy.Spec.MinReplicas = true, &least
		require.Equal(t, "replicas of Function resize are 0 although it always needs one, which switches scaling off: "+
			"set them to 1 or more", o.SwitchedOff().Message)
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

// anyOutcome is a random observation in mode Auto.
func anyOutcome(t testing.TB, r *rand.Rand, current int32) plan.Observed {
	o := outcome(t, current)
	for _, change := range []func(*plan.Observed){
		byDirect, mayBeZero, atZero,
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

func TestOnlyBoundsChangeReplicasWithoutAReading(t *testing.T) {
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
		require.Equal(t, held, *actions.Replicas, "of %d, unknown %v, frozen %v, problem %v", in.CurrentReplicas,
			in.Unknown,
			in.Frozen, o.Violation)
	}
}

func TestOneReplicaRecreatesAMissingSubscriptionAtZero(t *testing.T) {
	for name, change := range map[string]func(*plan.Observed){
		"HPA": disabled, "HPA that has not synced since": mayBeZero, "Direct": byDirect,
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

func TestTheMinimumOfTheAutoscaler(t *testing.T) {
	for name, test := range map[string]struct {
		given func(*plan.Observed)
		want  int32
	}{
		// One with 0 may write at zero, where the controller does.
		"one, if the policy allows zero": {mayBeZero, 1},
		"that of the policy":             {func(o *plan.Observed) { o.Policy.Spec.MinReplicas = new(int32(3)) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 1)
			test.given(&o)
			live, wanted := applied(t, o), plan.HorizontalPodAutoscaler(o.Policy, o.Target)
			require.Equal(t, test.want, *live.Spec.MinReplicas)
			require.Equal(t, "compute.functionmesh.io/v1alpha1", live.Spec.ScaleTargetRef.APIVersion)
			require.Equal(t, "Function", live.Spec.ScaleTargetRef.Kind)
			require.Equal(t, "resize", live.Spec.ScaleTargetRef.Name)
			require.True(t, plan.AutoscalerIsCurrent(live, wanted), "an equal object is not applied again")
			live.Spec.MinReplicas = new(int32)
			require.False(t, plan.AutoscalerIsCurrent(live, wanted))
		})
	}
}
