// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestEventsReportEachProblemOnceAndItsEnd(t *testing.T) {
	hold := func(reason string, wanted int32) func(*story) {
		return func(s *story) {
			s.d.Decision.Hold, s.d.Decision.Wanted = &policy.Hold{Reason: reason, Message: "wait"}, wanted
		}
	}
	for name, test := range map[string]struct {
		begin      func(*story)
		began, end []string
	}{
		"a hold keeps a raise back": {
			hold(policy.HoldWorkerUpdate, 14),
			[]string{"Normal ReplicasHeld WorkerUpdateInterval: wait; the load needs 14 replicas, and 10 are kept"},
			[]string{"Normal ReplicasReleased the replicas are no longer held: WorkerUpdateInterval"},
		},
		"a hold keeps replicas from being removed": {hold(policy.HoldStabilizing, 8), nil, nil},
		"a hold without a known need": {
			hold(policy.HoldUnverified, 10),
			[]string{"Normal ReplicasHeld ScaleUpUnverified: wait"},
			[]string{"Normal ReplicasReleased the replicas are no longer held: ScaleUpUnverified"},
		},
		"a limit behind the function": {
			hold(policy.HoldIneffective, 10),
			[]string{
				"Warning ExternalLimit more replicas would process no more messages (ScalingIneffective), see status.decision.hold",
			},
			[]string{"Normal DesiredWithinRange ScalingLimited is no longer ExternalLimit: no bound limits the desired replicas"},
		},
		"maxReplicas": {
			func(s *story) { s.d.Decision.CappedBy = policy.CappedByMax },
			[]string{"Warning TooManyReplicas the load needs more replicas than maxReplicas"},
			[]string{"Normal DesiredWithinRange ScalingLimited is no longer TooManyReplicas: no bound limits the desired replicas"},
		},
		"minReplicas": {func(s *story) { s.d.Decision.CappedBy = policy.CappedByMin }, nil, nil},
		"the objective": {
			func(s *story) { s.serve(policy.ObjectiveMissed) },
			[]string{"Warning CatchingUp messages wait longer than the latency objective: replicas drain the backlog"},
			[]string{"Normal WithinObjective ObjectiveMet is no longer CatchingUp: messages meet the latency objective"},
		},
		"the target is at maxReplicas, where a hold is none": {
			func(s *story) {
				hold(policy.HoldWorkerUpdate, 30)(s)
				s.o.Policy.Spec.MaxReplicas = 10
			}, nil, nil,
		},
		"a target that restarts its replicas": {
			func(s *story) {
				s.o.Target.Disturbances = []plan.Disturbance{{Reason: "PreciseParallelism", Message: "remove it"}}
			},
			[]string{"Warning PreciseParallelism remove it"},
			[]string{
				"Normal Undisturbed ScalesWithoutRestart is no longer PreciseParallelism: " +
					"a change of the number of replicas restarts none that run",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet(t)
			before, target, bound := s.d.Decision, *s.o.Target, s.o.Policy.Spec.MaxReplicas
			test.begin(s)
			s.goOn(2 * time.Minute)
			require.Equal(t, test.began, s.newEvents())
			s.anotherProcess()
			s.goOn(time.Minute)
			require.Empty(t, s.newEvents(), "another process knows what was reported")
			s.d.Decision, s.o.Target, s.o.Policy.Spec.MaxReplicas = before, &target, bound
			s.goOn(2 * time.Minute)
			require.Equal(t, test.end, s.newEvents())
		})
	}
}

// quiet is a story without a problem, except for the type of the subscription.
func quiet(t *testing.T) *story {
	t.Helper()
	s := begun(t)
	s.o.Policy.Spec.MaxReplicas = 30
	require.Equal(t, []string{"Warning SubscriptionTypeDiffers Function resize promises subscription \"public/default/resize\" of " +
		"type  and the broker reports Shared"},
		shortened(s.newEvents()))
	return s
}

func TestARecoveryIsReportedAfterATimeInWhichItWasUnknown(t *testing.T) {
	s := quiet(t)
	s.o.Unknown = backlog.ErrUnreachable
	s.goOn(30 * time.Second)
	require.Equal(t, []string{"Warning PulsarUnreachable unreachable"}, shortened(s.newEvents()))
	s.o.Unknown = backlog.ErrNoData
	s.goOn(20 * time.Second)
	require.Empty(t, s.newEvents())
	s.o.Unknown = nil
	s.goOn(30 * time.Second)
	require.Equal(t, []string{"Normal Scaling Ready is no longer PulsarUnreachable"}, shortened(s.newEvents()))
}

// shortened are events without their explanation.
func shortened(events []string) []string {
	for i, e := range events {
		events[i], _, _ = strings.Cut(e, ":")
	}
	return events
}

func TestAChangedDecisionIsReported(t *testing.T) {
	s := quiet(t)
	s.d.Decision.Replicas, s.d.Decision.Equation = 12, "120/s arriving / 10/s"
	s.goOn(10 * time.Second)
	require.Equal(t, []string{"Normal DesiredReplicasChanged 10 -> 12: 120/s arriving / 10/s"}, s.newEvents())
}

// However the load changes, events that follow it are reported at most once a minute, each with something new, and the
// last state is reported in the end.
func TestEventsThatFollowTheLoadAreOnceAMinute(t *testing.T) {
	actions := map[string][2]string{
		v1alpha1.ConditionObjectiveMet:   {"CheckObjectiveMet", "RecoverObjectiveMet"},
		v1alpha1.ConditionScalingLimited: {"CheckScalingLimited", "RecoverScalingLimited"},
	}
	caps := []string{"", policy.CappedByMax, policy.CappedByPartitions, policy.CappedByMin}
	same := func(a, b storyEvent) bool { return a.Reason == b.Reason && a.Action == b.Action }
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := quiet(t)
		for range 150 {
			s.serve([]policy.Objective{policy.ObjectiveMet, policy.ObjectiveMissed}[random.IntN(2)])
			s.d.Decision.CappedBy = caps[random.IntN(4)]
			s.d.Decision.Hold, s.d.Decision.Wanted = nil, 10+random.Int32N(3)
			if random.IntN(2) == 0 {
				s.d.Decision.Hold = &policy.Hold{Reason: []string{policy.HoldWorkerUpdate, policy.HoldNotStarting}[random.IntN(2)]}
			}
			s.goOn(time.Duration(1+random.IntN(6)) * 10 * time.Second)
		}
		s.goOn(3 * time.Minute) // the last change stays
		byName := map[string][]storyEvent{}
		for _, e := range s.events {
			for name, prefix := range actions {
				if e.Action == prefix[0] || e.Action == prefix[1] {
					byName[name] = append(byName[name], e)
				}
			}
			if strings.HasPrefix(e.Action, "Hold") || strings.HasPrefix(e.Action, "Release") {
				byName["raise"] = append(byName["raise"], e)
			}
		}
		for _, name := range []string{v1alpha1.ConditionObjectiveMet, v1alpha1.ConditionScalingLimited, "raise"} {
			events := byName[name]
			require.Greater(t, len(events), 10, "seed %d: %s", seed, name)
			for i := 1; i < len(events); i++ {
				require.GreaterOrEqual(t, events[i].at.Sub(events[i-1].at), time.Minute, "seed %d: %s", seed, name)
				require.False(t, same(events[i], events[i-1]), "seed %d: %s", seed, name)
			}
			last := events[len(events)-1]
			switch name {
			case "raise":
				held := s.d.Decision.Hold != nil && s.d.Decision.Wanted > 10
				require.Equal(t, held, last.Reason == v1alpha1.ReasonReplicasHeld, "seed %d", seed)
			case v1alpha1.ConditionObjectiveMet:
				require.Equal(t, s.says(name), map[bool]string{true: "True/", false: "False/"}[last.Type == "Normal"]+last.Reason,
					"seed %d", seed)
			}
		}
	}
}
