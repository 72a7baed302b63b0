// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const inactive = "Function Mesh does not act on the change: is its operator running?"

func TestReadyIsFalseWhileTheDecisionIsNotCarriedOut(t *testing.T) {
	stopped := func(s *story) { s.o.Target.Unfollowed = inactive }
	raised := func(s *story) { s.d.Decision.Replicas = 11 }
	type changes []func(*story)
	for name, test := range map[string]struct {
		given changes
		// after is when Ready is False; 0 for never.
		after         time.Duration
		want, message string
	}{
		"the operator is stopped": {changes{stopped}, 30 * time.Second, "NotFollowed", inactive},
		"the operator is stopped in a paused rollout": {changes{stopped, func(s *story) {
			s.o.Target.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused}
		}}, 0, "", ""},
		"the HPA does not scale": {
			changes{raised},
			30 * time.Second, "NotFollowed",
			"does not set the decided replicas: check that kube-controller-manager runs",
		},
		"the HPA cannot scale": {changes{raised, func(s *story) {
			s.o.Autoscaler.Status.Conditions[0] = autoscalingv2.HorizontalPodAutoscalerCondition{
				Type: autoscalingv2.AbleToScale, Status: corev1.ConditionFalse, Reason: "FailedUpdateScale",
			}
		}}, 30 * time.Second, "NotFollowed", "does not set the decided replicas (FailedUpdateScale): check"},
		"the HPA ignores a tenth": {changes{raised, func(s *story) {
			s.o.Autoscaler.Spec.Behavior.ScaleUp.Tolerance = nil
		}}, 0, "", ""},
		"the HPA ignores more than a tenth": {changes{func(s *story) {
			s.d.Decision.Replicas = 12
			s.o.Autoscaler.Spec.Behavior.ScaleUp.Tolerance = nil
		}}, 30 * time.Second, "NotFollowed", "does not set"},
		"mode is Recommend": {changes{stopped, raised, func(s *story) {
			s.o.Policy.Spec.Mode = v1alpha1.ModeRecommend
		}}, 0, "", ""},
		"the controller is set back": {
			changes{raised, func(s *story) { byDirect(&s.o) }},
			30 * time.Second, "NotFollowed",
			"find out what else writes them",
		},
		"pods crash": {changes{func(s *story) {
			s.o.Pods = &policy.Pods{Ready: 7, Unready: 3, CrashLooping: 3, UnreadySince: s.o.Now}
		}}, 30 * time.Second, "ReplicasNotStarting", "look at the events"},
		"few pods crash": {changes{func(s *story) {
			s.o.Pods = &policy.Pods{Ready: 8, Unready: 2, CrashLooping: 2, UnreadySince: s.o.Now}
		}}, 0, "", ""},
		"pods are pending": {changes{func(s *story) {
			s.o.Pods = &policy.Pods{Ready: 7, Unready: 3, UnreadySince: s.o.Now}
		}}, 5*time.Minute + 40*time.Second, "ReplicasNotStarting", "look at the events"},
		"no pods": {
			changes{func(s *story) { s.o.Target.Reported = new(int32(7)) }},
			5 * time.Minute,
			"ReplicasNotStarting", "are missing",
		},
		"a rollout replaces pods": {changes{func(s *story) {
			s.o.Target.Reported, s.o.Pods = new(int32(7)), &policy.Pods{Updating: true}
		}}, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			for _, change := range test.given {
				change(s)
			}
			// A period begins with the first reconcile that has the finding.
			s.goOn(10 * time.Second)
			if test.after == 0 {
				s.goOn(10 * time.Minute)
				require.Regexp(t, "^True/", s.says(v1alpha1.ConditionReady))
				return
			}
			for at := 10 * time.Second; at < test.after; at += 10 * time.Second {
				require.Equal(t, "True/Scaling", s.says(v1alpha1.ConditionReady), "after %s", at)
				s.goOn(10 * time.Second)
			}
			s.goOn(20 * time.Second)
			require.Equal(t, "False/"+test.want, s.says(v1alpha1.ConditionReady))
			require.Contains(t, s.message(v1alpha1.ConditionReady), test.message)
			writes := s.writes
			s.anotherProcess()
			s.goOn(20 * time.Second)
			require.Equal(t, "False/"+test.want, s.says(v1alpha1.ConditionReady), "in another process")
			require.Equal(t, writes, s.writes, "nothing is written while it lasts")

			s.o, s.d = recovered(t, s), begun(t).d
			s.goOn(10 * time.Second)
			if test.want == "ReplicasNotStarting" {
				s.goOn(30 * time.Second)
			}
			require.Equal(t, "True/Scaling", s.says(v1alpha1.ConditionReady))
		})
	}
}

func TestAnOperatorThatIsStoppedIsReportedWhilePulsarIsUnknown(t *testing.T) {
	s := begun(t)
	s.o.Unknown, s.o.Target.Unfollowed = backlog.ErrUnreachable, inactive
	s.goOn(30 * time.Second)
	require.Equal(t, "False/PulsarUnreachable", s.says(v1alpha1.ConditionReady))
	s.goOn(10 * time.Second)
	require.Equal(t, "False/NotFollowed", s.says(v1alpha1.ConditionReady))
	require.Equal(t, "False/NotFollowed", s.says(v1alpha1.ConditionObjectiveMet))
	s.o.Target.Unfollowed = ""
	s.goOn(10 * time.Second)
	require.Equal(t, "False/PulsarUnreachable", s.says(v1alpha1.ConditionReady))
}

// recovered is the observed state before the trouble, with the current time.
func recovered(t *testing.T, s *story) plan.Observed {
	t.Helper()
	o := begun(t).o
	o.Now = s.o.Now
	return o
}

func TestKEDAThatDoesNotScaleIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*plan.Observed)
		want   string
	}{
		"it does not":                       {func(*plan.Observed) {}, "False/NotFollowed"},
		"an annotation forbids a scale-out": {func(o *plan.Observed) { o.ScaledObject.PausedOut = true }, "True/ValidMetricFound"},
		"an annotation forbids a scale-in":  {func(o *plan.Observed) { o.ScaledObject.PausedIn = true }, "False/NotFollowed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			byKEDA(t)(&s.o)
			s.o.KEDAAutoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
				Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound",
			}}
			test.change(&s.o)
			s.d.Decision.Replicas = 11
			s.goOn(3 * time.Minute)
			if test.want == "False/NotFollowed" {
				require.Equal(t, test.want, s.says(v1alpha1.ConditionReady))
				require.Contains(t, s.message(v1alpha1.ConditionReady), "check that its operator and metrics server run")
				return
			}
			require.Equal(t, "True/Scaling", s.says(v1alpha1.ConditionReady))
			require.Equal(t, test.want, s.says(v1alpha1.ConditionScalingActive))
		})
	}
}

func TestAnAutoscalerThatLagsBehindARisingLoadFollows(t *testing.T) {
	s := begun(t)
	for replicas := int32(11); replicas < 30; replicas++ {
		s.d.Decision.Replicas = replicas + 3
		s.o.Target.Replicas = &replicas
		s.goOn(20 * time.Second)
		require.Equal(t, "True/Scaling", s.says(v1alpha1.ConditionReady))
		require.Contains(t, s.message(v1alpha1.ConditionReady), "about to follow")
	}
}

func TestAnOperatorThatActsWithinSecondsFollows(t *testing.T) {
	s := begun(t)
	for range 20 {
		s.o.Target.Unfollowed = inactive
		s.goOn(20 * time.Second)
		s.o.Target.Unfollowed = ""
		s.goOn(10 * time.Second)
		require.Equal(t, "True/Scaling", s.says(v1alpha1.ConditionReady))
	}
}

func TestStartingReplicasAreReported(t *testing.T) {
	s := begun(t)
	s.o.Target.Reported = new(int32(4))
	s.goOn(20 * time.Second)
	require.Equal(t, "the target follows the decisions, and replicas are starting", s.message(v1alpha1.ConditionReady))
}

func TestPodsThatCrashNowAndThenDoNotFlap(t *testing.T) {
	s := begun(t)
	crashes := &policy.Pods{Ready: 5, Unready: 5, CrashLooping: 5, UnreadySince: s.o.Now}
	changes, last := 0, s.says(v1alpha1.ConditionReady)
	for i := range 60 {
		if s.o.Pods = nil; i%3 > 0 { // two of three reconciles see them wait for the next start
			s.o.Pods = crashes
		}
		s.goOn(10 * time.Second)
		if now := s.says(v1alpha1.ConditionReady); now != last {
			changes, last = changes+1, now
		}
	}
	require.Equal(t, "False/ReplicasNotStarting", last)
	require.Equal(t, 1, changes)
}

// With thousands of autoscalers a sync takes longer, and its controller still works.
func TestAnAutoscalerHasTwoSyncsToFollow(t *testing.T) {
	for policies, want := range map[int]time.Duration{
		1: 30 * time.Second, 300: 30 * time.Second, 1000: 100 * time.Second, 10_000: 2 * time.Minute,
	} {
		s := begun(t)
		s.o.Policies = policies
		s.d.Decision.Replicas = 11
		s.goOn(10 * time.Second) // a period begins with the first reconcile that has the finding
		s.goOn(want - 10*time.Second)
		require.Equal(t, "True/Scaling", s.says(v1alpha1.ConditionReady), "%d policies", policies)
		s.goOn(10 * time.Second)
		require.Equal(t, "False/NotFollowed", s.says(v1alpha1.ConditionReady), "%d policies", policies)
	}
}

func TestWhatAnAutoscalerHasToSet(t *testing.T) {
	raised := func(s *story) { s.d.Decision.Replicas = 11 }
	seen := func(change func(*story)) func(*story) {
		return func(s *story) {
			raised(s)
			s.goOn(20 * time.Second)
			change(s)
		}
	}
	set := func(s *story) { s.d.Decision.Replicas, *s.o.Target.Replicas = 12, 11 }
	conflicts := func(s *story) { s.o.Violation = &plan.Violation{Condition: v1alpha1.ConditionAutoscalerApplied} }
	gap := func(s *story) { s.o.Now = s.o.Now.Add(time.Minute) }
	refused := func(s *story) {
		s.o.History = s.o.History.After(s.o, plan.Actions{}, plan.Result{Violation: &plan.Violation{}, Refused: true})
	}
	lowered := func(s *story) { s.d.Decision.Replicas, *s.o.Autoscaler.Spec.MinReplicas = 9, 10 }
	fails := func(s *story) { saying(&s.o, corev1.ConditionFalse, "FailedGetObjectMetric", "") }
	tests := map[string]struct {
		given func(*story)
		since time.Duration // before the last of two more reconciles; negative for nothing
	}{
		"nothing":                             {func(*story) {}, -1},
		"a raise":                             {raised, 10 * time.Second},
		"a later decision replaces it":        {seen(func(s *story) { s.d.Decision.Replicas = 12 }), 30 * time.Second},
		"the number is wanted no more":        {seen(func(s *story) { s.d.Decision.Replicas = 10 }), -1},
		"the autoscaler set one in between":   {seen(set), 10 * time.Second},
		"the controller writes it":            {seen(func(s *story) { byDirect(&s.o) }), -1},
		"a rollout holds it":                  {seen(func(s *story) { s.o.Target.Frozen = &policy.Hold{} }), -1},
		"another autoscaler is in the way":    {seen(conflicts), -1},
		"there is no autoscaler":              {seen(func(s *story) { s.o.Autoscaler = nil }), -1},
		"the autoscaler reports an error":     {seen(fails), -1},
		"the API server refused its change":   {seen(refused), -1},
		"its maximum is less":                 {seen(func(s *story) { s.o.Autoscaler.Spec.MaxReplicas = 10 }), -1},
		"its minimum is more":                 {seen(lowered), -1},
		"the autoscaler has not seen a wake":  {seen(func(s *story) { disabled(&s.o) }), 30 * time.Second},
		"a minute without a reconcile":        {seen(gap), 10 * time.Second},
		"the change is within its tolerance":  {seen(func(s *story) { s.o.Autoscaler.Spec.Behavior = nil }), -1},
		"the autoscaler of KEDA is like this": {seen(func(s *story) { byKEDA(t)(&s.o) }), 10 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			test.given(s)
			s.goOn(20 * time.Second)
			if test.since < 0 {
				require.Zero(t, s.history.Unset(s.o))
				return
			}
			require.Equal(t, plan.Unset{Since: s.o.Now.Add(-test.since), Replicas: *s.o.Target.Replicas}, s.history.Unset(s.o))
		})
	}
}

// The metric is not served while the backlog is unknown, and the HPA asks again at its next sync.
func TestTheHPAIsNoCauseBeforeItsFirstSyncAfterAnOutage(t *testing.T) {
	s := begun(t)
	s.o.Unknown = backlog.ErrUnreachable
	saying(&s.o, corev1.ConditionFalse, "FailedGetObjectMetric", "the backlog is unknown")
	s.goOn(time.Minute)
	require.NotContains(t, s.says(v1alpha1.ConditionReady), "True")
	s.newEvents()
	s.o.Unknown = nil
	for range 2 {
		s.goOn(10 * time.Second)
		require.Equal(t, "True/Scaling", s.says(v1alpha1.ConditionReady))
	}
	require.NotContains(t, strings.Join(s.newEvents(), "\n"), "Warning")
	s.goOn(30 * time.Second)
	require.Equal(t, "False/FailedGetObjectMetric", s.says(v1alpha1.ConditionReady))
}

// The load needs more than maxReplicas, and not even those run: first the HPA has to scale.
func TestAFrozenHPAControllerIsTheCauseAndNotMaxReplicas(t *testing.T) {
	s := begun(t)
	s.d.Decision.Replicas, s.d.Decision.CappedBy = 50, policy.CappedByMax
	s.serve(policy.ObjectiveMissed)
	var seen []string
	for range 6 {
		s.goOn(10 * time.Second)
		seen = append(seen, s.says(v1alpha1.ConditionObjectiveMet))
		require.NotContains(t, s.message(v1alpha1.ConditionReady), "maxReplicas")
	}
	require.NotContains(t, seen, "False/TooManyReplicas")
	require.Equal(t, "False/NotFollowed", seen[5])
	require.Contains(t, s.message(v1alpha1.ConditionReady), "kube-controller-manager")
}

// A broker that hangs lets requests time out: the last answer stays good for decisions, and the user is told why.
func TestAFrozenBrokerIsReportedAfterTwoFailedPolls(t *testing.T) {
	s := begun(t)
	s.d.Reading.Trouble = fmt.Errorf("%w: GET http://pulsar:8080: deadline exceeded", backlog.ErrUnreachable)
	s.stale = 13 * time.Second
	s.reconcile()
	require.Equal(t, "True/Measured", s.says(v1alpha1.ConditionBacklogKnown), "one failed poll is normal")
	s.stale = 23 * time.Second
	s.reconcile()
	require.Equal(t, "False/Stale", s.says(v1alpha1.ConditionBacklogKnown))
	require.Equal(t, "False/Stale", s.says(v1alpha1.ConditionReady))
	require.Regexp(t, "no good answer since .*deadline exceeded", s.message(v1alpha1.ConditionReady))
	require.NotNil(t, s.shown.Signals, "the last answer is still used")

	s.d.Reading.Trouble = nil
	s.reconcile()
	require.Equal(t, "True/Measured", s.says(v1alpha1.ConditionBacklogKnown), "an idle topic is polled less often")
}

func TestAChildThatStaysMissingPointsToTheOperator(t *testing.T) {
	s := begun(t)
	byDirect(&s.o)
	s.o.Target.MissingChild, s.o.Target.Unfollowed = &plan.MissingChild{}, inactive
	s.goOn(10 * time.Second)
	require.Equal(t, "Unknown/ChildMissing", s.says(v1alpha1.ConditionReady))
	s.goOn(40 * time.Second)
	require.Equal(t, "False/NotFollowed", s.says(v1alpha1.ConditionReady))
	require.Contains(t, s.message(v1alpha1.ConditionReady), inactive)
	require.Equal(t, "Unknown/ChildMissing", s.says(v1alpha1.ConditionTargetFound))
}
