// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// Prefetched messages are late long after others are not, and are processed one by one.
func TestTheOldestMessageFailsOnceItStays(t *testing.T) {
	for name, test := range map[string]struct {
		age  time.Duration
		want string
	}{
		"it is the same one":         {age: 10 * time.Second, want: "False/MessagesFail"},
		"it is another one by a bit": {age: 9 * time.Second, want: "False/CatchingUp"},
		"it is younger each time":    {age: 0, want: "False/CatchingUp"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			s.serve(policy.ObjectiveMissed)
			oldest := s.o.Now.Add(-time.Hour)
			for range 12 {
				s.d.Decision.Service.Oldest = oldest
				s.goOn(10 * time.Second)
				oldest = oldest.Add(10*time.Second - test.age)
			}
			require.Equal(t, test.want, s.says(v1alpha1.ConditionObjectiveMet))
			s.d.Decision.Service.Oldest = time.Time{}
			s.goOn(10 * time.Second)
			require.Equal(t, "False/CatchingUp", s.says(v1alpha1.ConditionObjectiveMet))
		})
	}
}

func TestAMissedObjectiveHasTheReasonThatIsKnown(t *testing.T) {
	hold := func(reason string) func(*story) {
		return func(s *story) { s.d.Decision.Hold = &policy.Hold{Reason: reason, Message: "3.47 of 12/s"} }
	}
	for name, test := range map[string]struct {
		change           func(*story)
		want, ready, why string
	}{
		"at maxReplicas": {
			func(s *story) { s.d.Decision.CappedBy = policy.CappedByMax }, "TooManyReplicas", "True/Scaling",
			"more replicas than maxReplicas",
		},
		"at the partitions": {
			func(s *story) { s.d.Decision.CappedBy = policy.CappedByPartitions }, "TooFewPartitions", "True/Scaling",
			"partitions",
		},
		"at minReplicas":      {func(s *story) { s.d.Decision.CappedBy = policy.CappedByMin }, "CatchingUp", "True/Scaling", "drain"},
		"a limit behind":      {hold(policy.HoldIneffective), "ExternalLimit", "True/Scaling", "ScalingIneffective"},
		"replicas are held":   {hold(policy.HoldWorkerUpdate), "ReplicasHeld", "True/Scaling", "WorkerUpdateInterval"},
		"held down only":      {hold(policy.HoldStabilizing), "CatchingUp", "True/Scaling", "drain"},
		"a wake did not help": {hold(policy.HoldWakeBackoff), "MessagesFail", "True/Scaling", "logs"},
		"blocked dispatch": {
			func(s *story) { s.d.Reading.Blocked = true }, "DispatchBlocked", "True/Scaling", "acknowledge",
		},
		"throttled dispatch": {
			func(s *story) { s.d.Reading.Throttled = true }, "DispatchThrottled", "True/Scaling", "rate limit",
		},
		"messages fail": {
			func(s *story) { s.d.Decision.Service.Failing = true }, "MessagesFail", "True/Scaling", "logs",
		},
		"pods are starting": {
			func(s *story) { s.o.Target.Reported = new(int32(9)) }, "ReplicasStarting", "True/Scaling", "starting",
		},
		"replicas do not consume yet": {
			func(s *story) { s.d.State.Start = policy.Start{Open: true, From: 4, Replicas: 10} }, "ReplicasStarting",
			"True/Scaling", "starting",
		},
		"the HPA is about to scale, as one of 1000": {
			func(s *story) { s.d.Decision.Replicas, s.o.Policies = 11, 1000 }, "ReplicasStarting", "True/Scaling", "starting",
		},
		"the operator is stopped": {
			func(s *story) { s.o.Target.Unfollowed = inactive }, "NotFollowed", "False/NotFollowed", "see condition Ready",
		},
		"pods crash": {
			func(s *story) { s.o.Pods = &policy.Pods{Unready: 9, CrashLooping: 9} }, "ReplicasNotStarting",
			"False/ReplicasNotStarting", "see condition Ready",
		},
		"others hold the backlog in their queues": {
			func(s *story) {
				s.d.Reading.Type, s.d.Reading.Consumers, s.d.Reading.Holding = backlog.Shared, backlog.Known(12), backlog.Known(3)
				s.d.Reading.Ready, s.d.Reading.Undispatched = backlog.Known(2914), backlog.Known(0)
				s.d.Reading.Partitions, s.d.Decision.Wait = 1, backlog.Known(2914.0/(12*20))
				s.o.Policy.Spec.LatencyObjective.Duration = 30 * time.Second
			}, "ReplicasStarved", "True/Scaling",
			"9 of 12 replicas have no messages, since 3 hold 2914 in their receive queues: set " +
				"spec.input.sourceSpecs.<topic>.receiverQueueSize to 40, which is 2 s of a replica's work",
		},
		"the queues of all replicas hold it": {
			func(s *story) {
				s.d.Reading.Type, s.d.Reading.Consumers, s.d.Reading.Holding = backlog.Shared, backlog.Known(3), backlog.Known(3)
				s.d.Reading.Ready, s.d.Reading.Undispatched = backlog.Known(2914), backlog.Known(0)
				s.d.Reading.Partitions, s.d.Decision.Wait = 1, backlog.Known(2914.0/(3*20))
				s.o.Policy.Spec.LatencyObjective.Duration = 30 * time.Second
				s.o.Policy.Spec.ScaleTargetRef.Kind = "FunctionMesh"
			}, "CatchingUp", "True/Scaling",
			"replicas drain the backlog: their receive queues hold 2914 messages, 48s of work that added replicas cannot " +
				"take. For the next backlog, set input.sourceSpecs.<topic>.receiverQueueSize of the entry to 40, which is 2 s " +
				"of a replica's work",
		},
		"no other reason": {func(*story) {}, "CatchingUp", "True/Scaling", "drain"},
		"mode is Recommend": {
			func(s *story) { s.o.Policy.Spec.Mode = v1alpha1.ModeRecommend }, "Recommending", "True/Recommending",
			"not carried out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			test.change(s)
			s.serve(policy.ObjectiveMissed)
			s.goOn(30 * time.Second)
			require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))
			s.goOn(10 * time.Second)
			require.Equal(t, "False/"+test.want, s.says(v1alpha1.ConditionObjectiveMet))
			require.Contains(t, s.message(v1alpha1.ConditionObjectiveMet), test.why)
			require.NotContains(t, s.message(v1alpha1.ConditionObjectiveMet), "3.47")
			require.Equal(t, test.ready, s.says(v1alpha1.ConditionReady))
			if test.ready[:4] == "True" {
				require.Contains(t, s.message(v1alpha1.ConditionReady),
					"messages wait longer than the latency objective ("+test.want+")")
			}
			s.anotherProcess()
			s.goOn(10 * time.Second)
			require.Equal(t, "False/"+test.want, s.says(v1alpha1.ConditionObjectiveMet), "in another process")

			s.serve(policy.ObjectiveMet)
			s.goOn(30 * time.Second)
			require.Equal(t, "False/"+test.want, s.says(v1alpha1.ConditionObjectiveMet))
			s.goOn(10 * time.Second)
			require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))
		})
	}
}

// The sum over the known topics is a lower bound: it may show that messages are late, and never that none is.
func TestAPartialReadingLeavesItOpenWhetherMessagesMeetTheObjective(t *testing.T) {
	const missing = "partial answer: 99 of 100 topics are known; missing: persistent://public/default/in-7 (permission missing)"
	s := begun(t)
	whole := s.d.Reading
	s.d.Reading = fixture.Partial(whole, backlog.ErrForbidden)
	s.serve(policy.ObjectiveUnknown)
	s.goOn(30 * time.Second)
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))
	s.goOn(10 * time.Second)
	require.Equal(t, "False/PartialAnswer", s.says(v1alpha1.ConditionObjectiveMet))
	require.Equal(t, "it is unknown whether messages meet the latency objective: "+missing,
		s.message(v1alpha1.ConditionObjectiveMet))
	s.anotherProcess()
	s.goOn(10 * time.Second)
	require.Equal(t, "False/PartialAnswer", s.says(v1alpha1.ConditionObjectiveMet), "in another process")

	s.serve(policy.ObjectiveMissed)
	s.goOn(10 * time.Second)
	require.Equal(t, "messages wait longer than the latency objective: see condition Ready",
		s.message(v1alpha1.ConditionObjectiveMet), "the known topics have too much")
	s.goOn(30 * time.Second)
	require.True(t, s.history.Late())

	s.serve(policy.ObjectiveUnknown)
	s.goOn(10 * time.Second)
	require.Contains(t, s.message(v1alpha1.ConditionObjectiveMet), missing)
	require.False(t, s.history.Late(), "an unknown message is not late")
	s.d.Reading = whole
	s.serve(policy.ObjectiveMet)
	s.goOn(30 * time.Second)
	require.Equal(t, "False/CatchingUp", s.says(v1alpha1.ConditionObjectiveMet))
	s.goOn(10 * time.Second)
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))

	s.d.Reading = fixture.Partial(whole, backlog.ErrForbidden)
	s.serve(policy.ObjectiveUnknown)
	s.goOn(time.Minute)
	require.Equal(t, "False/PartialAnswer", s.says(v1alpha1.ConditionObjectiveMet))
	s.d.Reading = whole
	s.serve(policy.ObjectiveMet)
	s.goOn(10 * time.Second)
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet), "they met it before, and do now")
}

func TestAPartialReadingOfNewTopicsIsNoMiss(t *testing.T) {
	s := begun(t)
	s.d.Reading = fixture.Partial(s.d.Reading, backlog.ErrNoData)
	s.serve(policy.ObjectiveUnknown)
	s.goOn(2 * time.Minute)
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))
}

func TestAWaitNearTheObjectiveDoesNotFlap(t *testing.T) {
	s := begun(t)
	writes := s.writes
	const rounds, heartbeats = 30, 6 // one every 4 to 5 minutes
	for range rounds {
		s.serve(policy.ObjectiveMissed)
		s.goOn(30 * time.Second)
		s.serve(policy.ObjectiveMet)
		s.goOn(20 * time.Second)
		require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))
	}
	require.LessOrEqual(t, s.writes, writes+heartbeats)
}

func TestStalledMessagesMissTheObjectiveOnceItHasPassed(t *testing.T) {
	s := begun(t)
	objective := policy.LatencyObjective(s.o.Policy.Spec)
	s.d.Decision.Replicas, s.o.Target.Replicas = 0, new(int32)
	mayBeZero(&s.o)
	s.serve(policy.ObjectiveStalled)
	s.goOn(10*time.Second + objective + 20*time.Second)
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))
	s.goOn(10 * time.Second)
	require.Equal(t, "False/CatchingUp", s.says(v1alpha1.ConditionObjectiveMet), "at zero replicas it counts too")
	require.Contains(t, s.message(v1alpha1.ConditionReady), "messages wait longer than the latency objective")
	s.serve(policy.ObjectiveMet)
	s.goOn(40 * time.Second)
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))
}

func TestAnObjectiveIsUnknownUntilItIsMeasured(t *testing.T) {
	s := begun(t)
	s.status.Conditions = nil
	s.anotherProcess()
	s.serve(policy.ObjectiveUnknown)
	s.goOn(time.Minute)
	require.Equal(t, "Unknown/Pending", s.says(v1alpha1.ConditionObjectiveMet))
	s.serve(policy.ObjectiveMissed)
	s.goOn(30 * time.Second)
	require.Equal(t, "Unknown/Pending", s.says(v1alpha1.ConditionObjectiveMet))
	s.goOn(10 * time.Second)
	require.Equal(t, "False/CatchingUp", s.says(v1alpha1.ConditionObjectiveMet))

	s.status.Conditions = nil
	s.anotherProcess()
	s.serve(policy.ObjectiveMet)
	s.goOn(10 * time.Second)
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet), "at once")
	s.o.Target.NeverAcknowledges = true
	s.goOn(10 * time.Second)
	require.Equal(t, "Unknown/NeverAcknowledged", s.says(v1alpha1.ConditionObjectiveMet))
	o := s.o
	o.Target = nil
	o.Violation = plan.Check(o.Subject, o.Autoscalers)
	s.shown = statusAfter(s.status, o, s.history, nil)
	require.Equal(t, "Unknown/NotChecked", s.says(v1alpha1.ConditionObjectiveMet))
}

func TestAnObjectiveThatCannotBeMeasuredCountsAsMissedAfterAWhile(t *testing.T) {
	s := begun(t)
	s.o.Unknown = backlog.ErrUnreachable
	s.goOn(30 * time.Second)
	require.Equal(t, "Unknown/NotChecked", s.says(v1alpha1.ConditionObjectiveMet))
	s.goOn(10 * time.Second)
	require.Equal(t, "False/PulsarUnreachable", s.says(v1alpha1.ConditionObjectiveMet))
	require.Equal(t, "False/PulsarUnreachable", s.says(v1alpha1.ConditionReady))
	s.o.Unknown = nil
	s.serve(policy.ObjectiveMet)
	s.goOn(10 * time.Second)
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet), "as it was before")

	s.serve(policy.ObjectiveMissed)
	s.goOn(40 * time.Second)
	s.o.Unknown = backlog.ErrUnreachable
	s.goOn(10 * time.Second)
	require.Equal(t, "False/PulsarUnreachable", s.says(v1alpha1.ConditionObjectiveMet), "it was missed before")
	s.o.Unknown = backlog.ErrNoData
	s.goOn(10 * time.Second)
	require.Equal(t, "Unknown/NotChecked", s.says(v1alpha1.ConditionObjectiveMet), "after a change of the subscription")
}

// Pulsar's function worker deletes and recreates a StatefulSet at each update.
func TestAMissedObjectiveStaysMissedWhenTheTargetIsRecreated(t *testing.T) {
	s := begun(t)
	s.serve(policy.ObjectiveMissed)
	s.goOn(40 * time.Second)
	require.Equal(t, "False/CatchingUp", s.says(v1alpha1.ConditionObjectiveMet))
	gone := s.o
	gone.Target = nil
	gone.Violation = plan.Check(gone.Subject, gone.Autoscalers)
	gone.Reading = nil
	s.history = s.history.Decided(gone, nil)
	s.status = statusAfter(s.status, gone, s.history, nil)
	s.shown = s.status
	require.Equal(t, "False/TargetNotFound", s.says(v1alpha1.ConditionObjectiveMet))
	require.Equal(t, "it is unknown whether messages meet the latency objective, see condition Ready",
		s.message(v1alpha1.ConditionObjectiveMet))

	s.serve(policy.ObjectiveMet)
	s.goOn(30 * time.Second)
	require.Equal(t, "False/CatchingUp", s.says(v1alpha1.ConditionObjectiveMet))
	s.goOn(10 * time.Second)
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))
}

// Replicas that count as one would look like replicas that start.
func TestMissingConsumersAreTheReasonOfAMissedObjective(t *testing.T) {
	s := begun(t)
	s.o.Policy.Spec.Subscription = &v1alpha1.Subscription{Name: "resize", ConsumersPerReplica: 4}
	s.o.Pods = &policy.Pods{Running: new(int32(10))}
	s.d.Reading.Consumers = backlog.Known(10)
	s.d.State.Start = policy.Start{Open: true, From: 4, Replicas: 10}
	s.serve(policy.ObjectiveMissed)
	s.goOn(2 * time.Minute)
	require.Equal(t, "False/ReplicasStarting", s.says(v1alpha1.ConditionObjectiveMet))
	s.goOn(10 * time.Second)
	require.Equal(t, "False/MissingConsumers", s.says(v1alpha1.ConditionObjectiveMet))
	require.Contains(t, s.message(v1alpha1.ConditionObjectiveMet), "see condition SubscriptionVerified")
	s.d.Reading.Consumers = backlog.Known(40)
	s.goOn(10 * time.Second)
	require.Equal(t, "False/ReplicasStarting", s.says(v1alpha1.ConditionObjectiveMet))
}
