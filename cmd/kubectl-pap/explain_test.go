// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// explained is the text 12 s after noon.
func explained(p v1alpha1.AutoscalingPolicy) string {
	return ofNow(&p, fixture.Noon().Add(12*time.Second)).text(80)
}

func TestExplainGoesFromSignalsToReplicas(t *testing.T) {
	require.Equal(t, `POLICY        media/resize
  target      Function/resize
  replicas    1 to 20
  objective   30s
  mode        Auto

MEASURED      12s ago, at 2026-11-21T12:00:00Z
  backlog     15060 messages, of which 60 do not count as work
  arriving    412 messages/s
  processed   61.3 messages/s
  window      rates cover the --rate-window of the adapter until then
  consumers   11 connected replicas
  wait        22s for a message published now, 73% of the objective
  topics      all are known

LEARNED       3m12s ago, at 2026-11-21T11:57:00Z
  capacity    61.3 messages/s by a replica that is busy, ±8% (one standard
              deviation), from 12 observations
  busy        a replica that always has work reports to be busy 98% of the time

DECIDED       12s ago, at 2026-11-21T12:00:00Z
  replicas    19
  strategy    Capacity
  equation    (412/s arriving + 13000 backlog / 18s) / 61.3/s per replica =
              18.50
  guards      tried, and did not hold: WithinObjective, ScaleUpUnverified,
              ScalingIneffective, DispatchLimited, ReplicasNotStarting
  held by     nothing

TO CHANGE IT
  objective   longer than 30s needs fewer replicas to drain a backlog, and
              shorter needs more: kubectl pap plan resize compares their costs
  capacity    fewer replicas are enough if each processes more: look at their
              CPU, and what they wait for

WRITTEN BY    HPA
  object      HorizontalPodAutoscaler resize
  reason      the first that the cluster supports

REPLICAS
  decided     19
  in the spec 19
  running     11
  consuming   11

ATTENTION     nothing: all conditions are as they should be
`, explained(scaledPolicy("resize", func(p *v1alpha1.AutoscalingPolicy) {
		p.Status.Decision.PassedGuards = []string{
			policy.HoldWithinObjective, policy.HoldUnverified, policy.HoldIneffective, policy.HoldDispatchLimited,
			policy.HoldNotStarting,
		}
	})))
}

// troubledPolicy is held, limited and partly unknown.
func troubledPolicy() v1alpha1.AutoscalingPolicy {
	const fix = "grant consume on namespace public/default to the role of the credentials"
	p := scaledPolicy("resize", hold("BacklogUnknown", "the load may be larger"),
		setCondition("Ready", "False", "PartialAnswer", "1 topic is unknown: "+fix),
		setCondition("BacklogKnown", "False", "PartialAnswer", "1 topic is unknown: "+fix),
		setCondition("ScalingLimited", "True", "TooManyReplicas", "the load needs more replicas than maxReplicas"),
		setCondition("ObjectiveMet", "Unknown", "NotChecked", "there is no decision"))
	p.Generation = 4
	p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(fixture.Noon().Add(-3 * time.Minute))
	p.Status.Decision.CappedBy = "maxReplicas"
	p.Status.Signals.Coverage = &v1alpha1.Coverage{
		Topics: 3, KnownTopics: 2,
		Missing: []v1alpha1.MissingTopic{{Name: "persistent://public/default/in-3", Message: fix}},
	}
	p.Status.TakenOver = &v1alpha1.TakenOver{
		MaxReplicas: new(int32(7)), ScaledObjects: []v1alpha1.ObjectName{"resize-keda"},
	}
	p.Status.LastScaleDown = &v1alpha1.ScaleDownResult{
		Time: metav1.NewTime(fixture.Noon().Add(-3 * time.Minute)), RemovedReplicas: 6, RedeliveredMessages: new(int64(20)),
	}
	p.Spec.ObjectivePercent = new(int32(99))
	p.Status.Attainment = &v1alpha1.Attainment{Percent: 98, BudgetLeftPercent: 42}
	p.Status.Forecast = &v1alpha1.ExpectedLoad{
		Time:   metav1.NewTime(fixture.Noon().Add(5 * time.Minute)),
		Within: metav1.Duration{Duration: 8 * time.Second}, PublishRate: v1alpha1.NewRate(400), Foreseen: 38, Of: 40,
	}
	p.Status.Start = &v1alpha1.ReplicaStart{
		Replicas: 12, TotalSeconds: 52,
		SchedulingSeconds: 2, InitContainersSeconds: 3, ContainersSeconds: 5, PackageSeconds: new(int32(12)),
		ProgramSeconds: 30,
	}
	return p
}

func TestExplainHasFieldsWithUnitsForPrograms(t *testing.T) {
	server := newAPIServer(t, scaledPolicy("resize", hold("BacklogUnknown", "the publish rate is unknown"),
		setCondition("ObjectiveMet", "False", "ReplicasHeld", "replicas are held"),
		func(p *v1alpha1.AutoscalingPolicy) {
			p.Status.Decision.CappedBy, p.Status.RunningReplicas = "partitions", nil
			p.Status.Decision.PassedGuards = []string{"ScaleDownStabilized"}
			p.Status.Forecast = troubledPolicy().Status.Forecast
		}))
	out, err := kubectlPap(t, "", "explain", "resize", "-n", "media", "-o", "json", "--server", server.url)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"namespace": "media", "name": "resize", "target": "Function/resize", "minReplicas": 1, "maxReplicas": 20,
		"latencyObjectiveSeconds": 30, "mode": "Auto", "generation": 1, "observedGeneration": 1,
		"measured": {
			"measuredAt": "2026-11-21T12:00:00Z", "readyMessages": 15060, "discountedMessages": 60,
			"publishedMessagesPerSecond": 412, "processedMessagesPerSecond": 61.3, "consumers": 11,
			"waitSeconds": 22, "waitPercent": 73
		},
		"learned": {
			"learnedAt": "2026-11-21T11:57:00Z", "messagesPerSecondPerReplica": 61.3, "uncertaintyPercent": 8,
			"observations": 12, "measuredBusyPercent": 98
		},
		"decided": {
			"decidedAt": "2026-11-21T12:00:00Z", "strategy": "Capacity",
			"equation": "(412/s arriving + 13000 backlog / 18s) / 61.3/s per replica = 18.50", "limitedBy": "partitions",
			"expected": {
				"beginsAt": "2026-11-21T12:05:00Z", "withinSeconds": 8, "publishedMessagesPerSecond": 400,
				"foreseen": 38, "of": 40
			},
			"passedGuards": ["ScaleDownStabilized"],
			"heldBy": {"reason": "BacklogUnknown", "message": "the publish rate is unknown"}
		},
		"changes": [
			{"what": "partitions", "how": "add partitions: each keeps one replica busy"},
			{"what": "hold", "how": "it ends with its cause: Special cases in docs/algorithm.md has all"},
			{"what": "objective", "how": "longer than 30s needs fewer replicas to drain a backlog, and shorter needs more: `+
		`kubectl pap plan resize compares their costs"},
			{"what": "capacity", "how": "fewer replicas are enough if each processes more: look at their CPU, and what they `+
		`wait for"}
		],
		"writtenBy": {
			"actuator": "HPA", "horizontalPodAutoscaler": "resize", "reason": "the first that the cluster supports"
		},
		"replicas": {"decided": 19, "spec": 19, "consuming": 11},
		"attention": [{
			"type": "ObjectiveMet", "status": "False", "reason": "ReplicasHeld", "message": "replicas are held",
			"lastTransitionTime": null
		}]
	}`, out)
}

func TestExplainNamesWhatHoldsAndLimits(t *testing.T) {
	text := explained(troubledPolicy())
	for _, want := range []string{
		"\n  status      it describes generation 1 of the spec, which has generation 4 by\n              now\n",
		"\n  topics      2 of 3 are known, so the numbers are lower bounds\n",
		"\n  missing     persistent://public/default/in-3: grant consume on namespace\n",
		"\n  limited by  maxReplicas, which is 20\n",
		"\n  expected    400 messages/s at 2026-11-21 12:05:00, 8s earlier or later: 38 of\n" +
			"              the last 40 came when they were expected\n",
		"\n  in time     98% of the messages, at least 99% have to be: 42% of the budget\n" +
			"              for late ones is left\n",
		"\n  held by     BacklogUnknown: the load may be larger\n",
		"\n  suspended   Function Mesh's autoscaler, with maxReplicas 7\n",
		"\n  suspended   ScaledObject resize-keda\n",
		"\n  start       52s, median of 12: scheduling 2s, init containers 3s, containers\n" +
			"              5s, package 12s, program 30s\n",
		"\n  removed     6, 3m12s ago; redelivered: 20 messages\n",
		"\nATTENTION\n  Ready       False for 3m12s (PartialAnswer): 1 topic is unknown: grant consume\n",
		"\n  ScalingLimited\n              True (TooManyReplicas): the load needs more replicas than\n              maxReplicas\n",
		"\n  not checked ObjectiveMet\n",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "BacklogKnown", "Ready says the same")
}

func TestExplainNamesWhatWouldChangeTheReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		decision v1alpha1.Decision
		want     string
	}{
		"a limit of the policy": {
			v1alpha1.Decision{Strategy: v1alpha1.StrategyRatePerReplica, CappedBy: policy.CappedByMax},
			"  maxReplicas without this limit the load alone decides\n" +
				"  strategies  fewer replicas with a larger number in the parameters of\n              RatePerReplica\n",
		},
		"partitions": {
			v1alpha1.Decision{Strategy: v1alpha1.StrategyBacklogPerReplica, CappedBy: policy.CappedByPartitions},
			"  partitions  add partitions: each keeps one replica busy\n",
		},
		"a limit of how fast": {
			v1alpha1.Decision{Hold: &v1alpha1.Hold{Reason: policy.HoldScaleDownLimit}},
			"  behavior    its policies limit how fast replicas change\n",
		},
		"a stabilization window": {
			v1alpha1.Decision{Hold: &v1alpha1.Hold{Reason: policy.HoldScaleUpStabilized}},
			"  behavior    a shorter scaleUp.stabilizationWindowSeconds adds replicas earlier\n",
		},
		"another hold": {
			v1alpha1.Decision{Hold: &v1alpha1.Hold{Reason: policy.HoldDispatchLimited}},
			"  hold        it ends with its cause: Special cases in docs/algorithm.md has all\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := scaledPolicy("resize")
			p.Status.Decision = &test.decision
			require.Contains(t, explained(p), "\nTO CHANGE IT\n"+test.want)
		})
	}
}

func TestExplainKeepsUnknownUnknown(t *testing.T) {
	unmeasured := scaledPolicy("resize", func(p *v1alpha1.AutoscalingPolicy) {
		p.Status.Signals.ReadyMessages, p.Status.Signals.PublishRate, p.Status.Signals.Wait = nil, nil, nil
		p.Status.Signals.Consumers, p.Status.RunningReplicas = nil, nil
	})
	for name, test := range map[string]struct {
		policy v1alpha1.AutoscalingPolicy
		want   []string
	}{
		"single values": {
			unmeasured,
			[]string{
				"backlog     unknown\n", "arriving    unknown\n", "wait        unknown\n", "running     unknown\n",
				"consuming   unknown\n",
			},
		},
		"a paused policy": {
			scaledPolicy("resize", paused),
			[]string{
				"MEASURED      nothing\n", "LEARNED       nothing yet\n", "DECIDED       nothing\n",
				"TO CHANGE IT  there is no decision: see ATTENTION\n",
				"WRITTEN BY    nothing\n  reason      mode is Paused\n", "in the spec 3\n", "ATTENTION     nothing: ",
			},
		},
		"all policies are paused": {
			scaledPolicy("resize", setCondition("Ready", "True", "Paused", "all policies are paused")),
			[]string{"mode        Auto\n", "WRITTEN BY    nothing\n  reason      all policies are paused\n"},
		},
		"a policy that the controller has not read": {
			scaledPolicy("resize", unread), []string{"target      unknown\n", "Ready       Unknown (Pending):"},
		},
		"an object of a bare API server": {
			scaledPolicy("resize", func(p *v1alpha1.AutoscalingPolicy) { p.Status = v1alpha1.AutoscalingPolicyStatus{} }),
			[]string{"ATTENTION     the policy has no status: check that the adapter runs\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := explained(test.policy)
			for _, want := range test.want {
				require.Contains(t, text, want)
			}
		})
	}
}

func TestExplainReadsOnePolicy(t *testing.T) {
	server := newAPIServer(t, fleetPolicies()...)
	out, err := kubectlPap(t, "", "explain", "index", "-n", "media", "--server", server.url)
	require.NoError(t, err)
	require.Contains(t, out, "wait        2m30s for a message published now, 500% of the objective\n")
	require.Equal(t, []string{"/apis/pulsar-autoscaler.io/v1alpha1/namespaces/media/autoscalingpolicies/index"},
		server.reads())
	_, err = kubectlPap(t, "", "explain", "absent", "-n", "media", "--server", server.url)
	require.ErrorContains(t, err, `reading policy absent in namespace media: autoscalingpolicies "absent" not found`)
	_, err = kubectlPap(t, "", "explain")
	require.ErrorContains(t, err, "accepts 1 arg(s)")
}

func TestNamesOfPoliciesAreCompleted(t *testing.T) {
	server := newAPIServer(t, fleetPolicies()...)
	args := []string{"explain", "-n", "media", "--server", server.url, ""}
	require.Equal(t, args, arguments(append([]string{"/usr/bin/kubectl-pap"}, args...)))
	out, err := kubectlPap(t, "", arguments(append([]string{"/usr/bin/kubectl_complete-pap"}, args...))...)
	require.NoError(t, err)
	require.Contains(t, out, "\nresize\n")
}

func TestExplainShowsTheLimitsOfActiveSchedules(t *testing.T) {
	p := v1alpha1.AutoscalingPolicy{}
	p.Spec.MaxReplicas = 20
	p.Status.Limits = &v1alpha1.Limits{MinReplicas: 4, MaxReplicas: 20, Schedules: []v1alpha1.ScheduleName{"day"}}
	p.Status.Decision = &v1alpha1.Decision{CappedBy: policy.CappedByMin}
	require.Contains(t, explained(p), "replicas    4 to 20\n  schedule    day is active\n")
	require.Contains(t, explained(p), "limited by  minReplicas, which is 4\n")
}
