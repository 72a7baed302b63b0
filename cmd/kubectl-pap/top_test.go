// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// scaledPolicy is a policy with a complete status: 22 s of an objective of 30 s.
func scaledPolicy(name string, changes ...func(*v1alpha1.AutoscalingPolicy)) v1alpha1.AutoscalingPolicy {
	measured := metav1.NewTime(fixture.Noon())
	rate := func(perSecond float64) *v1alpha1.Rate { return new(v1alpha1.NewRate(perSecond)) }
	p := *fixture.Policy()
	p.Name = name
	p.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "AutoscalingPolicy"}
	p.Spec.LatencyObjective = metav1.Duration{Duration: 30 * time.Second}
	p.Status = v1alpha1.AutoscalingPolicyStatus{
		ObservedGeneration: 1, Target: "Function/" + name,
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: "True", Reason: "Scaling", Message: "the target follows the decisions"},
			{Type: "ObjectiveMet", Status: "True", Reason: "WithinObjective", Message: "messages meet the latency objective"},
			{Type: "ScalingLimited", Status: "False", Reason: "DesiredWithinRange"},
			{Type: "BacklogKnown", Status: "True", Reason: "Measured"},
		},
		DesiredReplicas: new(int32(19)), SpecReplicas: new(int32(19)), RunningReplicas: new(int32(11)),
		Actuator: &v1alpha1.ActuatorStatus{
			Type: v1alpha1.ActuatorHPA, Reason: "the first that the cluster supports",
		},
		HorizontalPodAutoscaler: name,
		Signals: &v1alpha1.Signals{
			MeasuredAt: measured, ReadyMessages: new(int64(15060)), DiscountedMessages: new(int64(60)),
			PublishRate: rate(412), ProcessRate: rate(61.25), Consumers: new(int32(11)),
			Wait: &metav1.Duration{Duration: 22 * time.Second},
		},
		Decision: &v1alpha1.Decision{
			Time: measured, Strategy: v1alpha1.StrategyCapacity,
			Equation: "(412/s arriving + 13000 backlog / 18s) / 61.3/s per replica = 18.50",
		},
		Capacity: &v1alpha1.Capacity{
			MessagesPerSecond: *rate(61.3), UncertaintyPercent: new(int32(8)), MeasuredBusyPercent: new(int32(98)),
			Observations: 12, LearnedAt: metav1.NewTime(measured.Add(-3 * time.Minute)),
		},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func setCondition(kind, status, reason, message string) func(*v1alpha1.AutoscalingPolicy) {
	return func(p *v1alpha1.AutoscalingPolicy) {
		for i := range p.Status.Conditions {
			if c := &p.Status.Conditions[i]; c.Type == kind {
				c.Status, c.Reason, c.Message = metav1.ConditionStatus(status), reason, message
			}
		}
	}
}

func setWait(d time.Duration) func(*v1alpha1.AutoscalingPolicy) {
	return func(p *v1alpha1.AutoscalingPolicy) { p.Status.Signals.Wait = &metav1.Duration{Duration: d} }
}

func hold(reason, message string) func(*v1alpha1.AutoscalingPolicy) {
	return func(p *v1alpha1.AutoscalingPolicy) {
		p.Status.Decision.Hold = &v1alpha1.Hold{Reason: reason, Message: message}
	}
}

// paused is what the controller writes in mode Paused.
func paused(p *v1alpha1.AutoscalingPolicy) {
	p.Spec.Mode = v1alpha1.ModePaused
	p.Status = v1alpha1.AutoscalingPolicyStatus{
		ObservedGeneration: 1, Target: p.Status.Target, SpecReplicas: new(int32(3)),
		Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Paused", Message: "mode is Paused"}},
	}
}

// unread is a policy that the controller has not read.
func unread(p *v1alpha1.AutoscalingPolicy) {
	p.Status = v1alpha1.AutoscalingPolicyStatus{
		Conditions: []metav1.Condition{{Type: "Ready", Status: "Unknown", Reason: "Pending"}},
	}
}

// fleetPolicies are listed from the best to the worst.
func fleetPolicies() []v1alpha1.AutoscalingPolicy {
	return []v1alpha1.AutoscalingPolicy{
		scaledPolicy("audit", paused),
		scaledPolicy("crop", setWait(200*time.Millisecond), hold("ScaleDownStabilized", "more were needed 10s ago")),
		scaledPolicy("resize"),
		scaledPolicy("thumbs", unread),
		scaledPolicy("index", setWait(150*time.Second), setCondition("ObjectiveMet", "False", "TooManyReplicas", ""),
			setCondition("ScalingLimited", "True", "TooManyReplicas", ""), func(p *v1alpha1.AutoscalingPolicy) {
				p.Status.Signals.ReadyMessages = new(int64(1_234_567))
				p.Status.Signals.PublishRate = new(v1alpha1.NewRate(23_456))
			}),
		scaledPolicy("an-extraordinarily-long-name-of-a-policy",
			setCondition("Ready", "False", "PulsarUnreachable", ""),
			setCondition("ObjectiveMet", "False", "PulsarUnreachable", ""),
			func(p *v1alpha1.AutoscalingPolicy) { p.Status.Signals = nil }),
	}
}

func TestTopListsTheWorstFirstIn80Columns(t *testing.T) {
	text := topTable{namespaces: true}.text(topRows(fleetPolicies()), 80, fixture.Noon())
	require.Equal(t, `NAME              WAIT/OBJ   BACKLOG  IN/S   OUT/S  REPLICAS  WHY
media/an-extrao…  -/30s      -        -      -      19/19/11  PulsarUnreachable
media/index       2m30s/30s  1.23M    23.5k  61.3   19/19/11  TooManyReplicas
media/thumbs      -/30s      -        -      -      -/-/-     Pending
media/resize      22s/30s    15.1k    412    61.3   19/19/11  
media/crop        0.2s/30s   15.1k    412    61.3   19/19/11  ScaleDownStabiliz…
media/audit       -/30s      -        -      -      -/3/-     Paused
`, text)
}

func TestTopIsCutOnATerminalOnly(t *testing.T) {
	const name = "an-extraordinarily-long-name-of-a-policy"
	rows := topRows(fleetPolicies())
	require.Contains(t, topTable{}.text(rows, 0, fixture.Noon()), name)
	narrow := topTable{namespaces: true}.text(rows, 70, fixture.Noon())
	require.Contains(t, narrow, "media/an-extrao…  ", "a name keeps 16 characters")
	require.Contains(t, narrow, "…\n", "then reasons are cut")
	for _, line := range strings.Split(narrow, "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 70, line)
	}
}

func TestTopNamesOneReason(t *testing.T) {
	late := setCondition("ObjectiveMet", "False", "CatchingUp", "")
	held := hold("ReplicasNotStarting", "")
	limited := setCondition("ScalingLimited", "True", "ExternalLimit", "")
	type changes []func(*v1alpha1.AutoscalingPolicy)
	bounded := func(p *v1alpha1.AutoscalingPolicy) { p.Status.Decision.CappedBy = "minReplicas" }
	bare := func(p *v1alpha1.AutoscalingPolicy) { p.Status = v1alpha1.AutoscalingPolicyStatus{} }
	for name, test := range map[string]struct {
		changes changes
		want    string
	}{
		"nothing is wrong":             {nil, ""},
		"the autoscaler does not work": {changes{setCondition("Ready", "False", "NotFollowed", ""), late}, "NotFollowed"},
		"messages are late":            {changes{late, hold("WithinObjective", "")}, "CatchingUp"},
		"they are late by a hold": {
			changes{setCondition("ObjectiveMet", "False", "ReplicasHeld", ""), held}, "ReplicasNotStarting",
		},
		"a hold while messages meet it":    {changes{held, limited}, "ReplicasNotStarting"},
		"a limit while messages meet it":   {changes{limited}, "ExternalLimit"},
		"a bound of a decision":            {changes{bounded}, "minReplicas"},
		"at zero":                          {changes{setCondition("Ready", "True", "ScaledToZero", "")}, "ScaledToZero"},
		"the controller has not read it":   {changes{unread}, "Pending"},
		"an object of a bare API server":   {changes{bare}, ""},
		"mode Recommend, which shows only": {changes{setCondition("Ready", "True", "Recommending", "")}, "Recommending"},
	} {
		t.Run(name, func(t *testing.T) {
			p := scaledPolicy("resize", test.changes...)
			require.Equal(t, test.want, newTopRow(&p).Why)
		})
	}
}

func TestTopShowsLateMessagesBeforeTheConditionDoes(t *testing.T) {
	rows := topRows([]v1alpha1.AutoscalingPolicy{scaledPolicy("a", unread), scaledPolicy("b", setWait(31*time.Second))})
	require.Equal(t, "b", rows[0].Name)
}

func TestTopReadsPoliciesAndNothingElse(t *testing.T) {
	server := newAPIServer(t, fleetPolicies()...)
	out, err := kubectlPap(t, "", "top", "-A", "-l", "team=media", "--server", server.url)
	require.NoError(t, err)
	require.Contains(t, out, "media/index ")
	out, err = kubectlPap(t, "", "top", "-n", "media", "-o", "wide", "--server", server.url)
	require.NoError(t, err)
	require.Regexp(t, `\nresize +22s/30s .* True +Auto +Function/resize +HPA +61.3 +- +- +\d+d`, out)
	require.Equal(t, []string{
		"/apis/pulsar-autoscaler.io/v1alpha1/autoscalingpolicies?team=media",
		"/apis/pulsar-autoscaler.io/v1alpha1/namespaces/media/autoscalingpolicies?",
	}, server.reads())
}

func TestTopWritesJSON(t *testing.T) {
	server := newAPIServer(t, fleetPolicies()...)
	out, err := kubectlPap(t, "", "top", "-n", "media", "-o", "json", "--server", server.url)
	require.NoError(t, err)
	var list struct{ Items []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Len(t, list.Items, 6)
	require.Equal(t, "PulsarUnreachable", list.Items[0]["why"])
	require.NotContains(t, list.Items[0], "waitSeconds", "an unknown value is absent")
	require.Equal(t, map[string]any{
		"namespace": "media", "name": "index", "target": "Function/index", "mode": "Auto", "objectiveMet": "False",
		"waitSeconds": 150.0, "latencyObjectiveSeconds": 30.0, "waitPercent": 500.0, "readyMessages": 1234567.0,
		"discountedMessages": 60.0, "consumers": 11.0, "publishedMessagesPerSecond": 23456.0,
		"processedMessagesPerSecond": 61.3, "desiredReplicas": 19.0, "specReplicas": 19.0, "runningReplicas": 11.0,
		"limitedBy": "TooManyReplicas", "why": "TooManyReplicas", "actuator": "HPA", "messagesPerSecondPerReplica": 61.3,
		"measuredAt": "2026-11-21T12:00:00Z",
	}, list.Items[1])
}

func TestTopSaysThatThereIsNothing(t *testing.T) {
	server := newAPIServer(t)
	for _, test := range []struct {
		arg, want string
	}{
		{"-n=media", "No policies found in this namespace: -A lists those of all namespaces.\n"},
		{"-A", "No policies found.\n"},
		{"-ojson", "{\n  \"items\": []\n}\n"},
	} {
		out, err := kubectlPap(t, "", "top", test.arg, "--server", server.url)
		require.NoError(t, err)
		require.Equal(t, test.want, out)
	}
}

func TestTopNamesTheFix(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a watch of JSON":       {[]string{"-w", "-o", "json"}, "leave out --output"},
		"all and one namespace": {[]string{"-A", "-n", "media"}, "leave out one of them"},
		"no selector":           {[]string{"-l", "a in"}, "--selector: "},
		"an argument":           {[]string{"resize"}, "unknown command"},
		"no kubeconfig":         {[]string{"--kubeconfig", "missing.yaml"}, "missing.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubectlPap(t, "", append([]string{"top"}, test.args...)...)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestARefusedRequestNamesTheFix(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*apiServer)
		want   string
	}{
		"the kind is not installed": {
			func(s *apiServer) { s.uninstalled = true }, "install pulsar-autoscaler on this cluster",
		},
		"the user may not": {
			func(s *apiServer) { s.forbidden = true }, "bind the ClusterRole view, or pulsar-autoscaler-view",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			test.change(server)
			for _, args := range [][]string{{"top"}, {"explain", "resize"}} {
				_, err := kubectlPap(t, "", append(args, "-n", "media", "--server", server.url)...)
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

func TestAPausedPolicyWithLateMessagesIsListedFirst(t *testing.T) {
	rows := topRows([]v1alpha1.AutoscalingPolicy{
		scaledPolicy("resize"),
		scaledPolicy("audit", setWait(150*time.Second), setCondition("Ready", "True", "Paused", ""),
			setCondition("ObjectiveMet", "False", "Paused", ""), func(p *v1alpha1.AutoscalingPolicy) {
				p.Spec.Mode, p.Status.Decision = v1alpha1.ModePaused, nil
			}),
	})
	require.Equal(t, "audit", rows[0].Name)
	require.Equal(t, "Paused", rows[0].Why)
}

func TestAPolicyIsListedAsPausedWhileAllArePaused(t *testing.T) {
	rows := topRows([]v1alpha1.AutoscalingPolicy{
		scaledPolicy("audit", setCondition("Ready", "True", "Paused", ""), func(p *v1alpha1.AutoscalingPolicy) {
			p.Status.Decision = nil
		}),
		scaledPolicy("resize"),
	})
	require.Equal(t, "audit", rows[1].Name)
	require.Equal(t, "Paused", rows[1].Why)
	require.Equal(t, "2 policies: 0 late, 0 unknown, 1 in time, 1 paused", summary(rows))
}
