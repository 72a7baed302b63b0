// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

// run is a scenario with our controller: the truth of each second, and the status after each decision.
type run struct {
	model.Scenario
	truth   []model.Truth
	reports []reported

	policy  *v1alpha1.AutoscalingPolicy
	written plan.History
	history report.History
}

// reported is a decision with the status after it.
type reported struct {
	second   int
	input    policy.Input
	decision policy.Decision
	status   v1alpha1.AutoscalingPolicyStatus
}

// observe runs a scenario like the controller, which writes a status if it is due. Nothing sets replicas while the HPA
// is stopped.
func observe(t *testing.T, s model.Scenario, stopped model.Span) *run {
	t.Helper()
	system := model.New(s, 7)
	c := newCapacity(system.Scenario())
	r := &run{Scenario: system.Scenario(), policy: &v1alpha1.AutoscalingPolicy{Spec: c.spec}}
	r.policy.Name, r.policy.Namespace, r.policy.UID, r.policy.Generation = "fn", "default", "uid-1", 1
	r.policy.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: "fn",
	}
	for range s.Seconds {
		system.Step()
		r.truth = append(r.truth, system.Truth())
		if slices.Contains(s.Restarts, system.Second()) {
			r.written, r.history = plan.History{}, report.History{}
		}
		replicas := c.Replicas(system)
		if c.decision.Time.Equal(system.Time()) {
			r.reconcile(t, c, system.Second())
		}
		if second := system.Second(); second < stopped.From || second >= stopped.To {
			system.Scale(replicas)
		}
	}
	return r
}

// reconcile writes the status of a decision, for a policy with a working HorizontalPodAutoscaler.
func (r *run) reconcile(t *testing.T, c *capacity, second int) {
	t.Helper()
	in, truth := c.input, r.truth[second]
	in.Pods.Running = new(int32(truth.Replicas - truth.NotRunning))
	o := plan.Observed{
		Subject: plan.Subject{
			Now: in.Now, Policy: r.policy.DeepCopy(), Target: &plan.Target{
				Ref: r.policy.Spec.ScaleTargetRef, Replicas: &in.CurrentReplicas, Subscription: c.subscription,
				Component: model.Subscription,
			},
		},
		Memory:   plan.Memory{History: r.written},
		Actuator: v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorHPA},
		Measured: plan.Measured{Unknown: in.Unknown, Partitions: in.Partitions, Pods: in.Pods, PollInterval: in.PollInterval},
	}
	if in.Unknown == nil {
		o.Reading = &in.Reading
	}
	o.Autoscaler = plan.HorizontalPodAutoscaler(o.Policy, o.Target)
	o.Autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound"},
	}
	r.history = r.history.Decided(o, &c.decision)
	result := plan.Unwritten(o, plan.Actions{})
	status := report.Status(o, r.history, &c.decision, c.state, result)
	r.reports = append(r.reports, reported{second: second, input: in, decision: c.decision, status: status})
	if report.Due(o, r.history, status) {
		r.policy.Status = status
	}
	r.written = o.History.After(o, plan.Actions{}, result)
}

func (m reported) says(condition string) metav1.Condition {
	c := meta.FindStatusCondition(m.status.Conditions, condition)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

// ever and always report whether something was true in the last seconds; always is false near the start.
func (r *run) ever(second, last int, is func(model.Truth) bool) bool {
	return slices.ContainsFunc(r.truth[max(0, second-last):second+1], is)
}

func (r *run) always(second, last int, is func(model.Truth) bool) bool {
	return second >= last && !r.ever(second, last, func(t model.Truth) bool { return !is(t) })
}

// late reports whether messages were late by more than a share of the objective.
func (r *run) late(share float64) func(model.Truth) bool {
	most := share * r.Objective.Seconds()
	return func(t model.Truth) bool { return float64(t.Oldest) > most || t.Wait > most }
}

// unknown is why the backlog is unknown, or partly unknown.
func (m reported) unknown() error {
	return cmp.Or(m.input.Unknown, m.input.Reading.Coverage.Err())
}

// outage reports whether a reading was missing in the last seconds, or a part of it.
func (r *run) outage(i, last int) bool {
	from := r.reports[i].second - last
	for ; i >= 0 && r.reports[i].second >= from; i-- {
		if r.reports[i].unknown() != nil {
			return true
		}
	}
	return false
}

// hpaStops is a step of the load with a HorizontalPodAutoscaler that stops for ten minutes.
func hpaStops() (s model.Scenario, stopped model.Span) {
	s = named("step")
	s.Name = "hpa-stops"
	return s, model.Span{From: 9 * 60, To: 19 * 60}
}

func named(name string) model.Scenario {
	all := suite.Named()
	return all[slices.IndexFunc(all, func(s suite.Scenario) bool { return s.Name == name })].Scenario
}

func TestConditionsAgreeWithEachOtherAndWithTheModel(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	check := func(s model.Scenario, stopped model.Span) {
		s.Seconds = min(s.Seconds, 2*3600)
		r := observe(t, s, stopped)
		for name, rule := range rules() {
			if first, count := r.breaks(rule); count > 0 {
				t.Errorf("%s: it does not hold that %s: %d times, first %s", s.Name, name, count, first)
			}
		}
		for _, m := range r.reports {
			for _, c := range m.status.Conditions {
				said[c.Type+" "+c.Reason] = true
			}
		}
	}
	for _, s := range append(suite.Named(), suite.HeldOut(7, 30)...) {
		check(s.Scenario, model.Span{})
	}
	check(hpaStops())
	for _, what := range []string{
		"Ready NotFollowed", "Ready ReplicasNotStarting", "Ready Stale", "Ready ScaledToZero",
		"ScalingLimited TooManyReplicas", "ScalingLimited ExternalLimit", "ObjectiveMet WithinObjective",
		"ObjectiveMet TooManyReplicas",
		"ObjectiveMet ExternalLimit", "ObjectiveMet ReplicasStarting", "ObjectiveMet ReplicasHeld",
		"ObjectiveMet ReplicasNotStarting", "ObjectiveMet CatchingUp", "ObjectiveMet MessagesFail", "ObjectiveMet Stale",
		"ObjectiveMet NotFollowed",
	} {
		require.True(t, said[what], "no status of the suite has %s", what)
	}
}

// breaks counts the statuses that break a rule, and returns the first.
func (r *run) breaks(rule rule) (first string, count int) {
	for i, m := range r.reports {
		what := rule(r, i)
		if what == "" {
			continue
		}
		if count++; count == 1 {
			first = fmt.Sprintf("at %d s: %s, while the conditions say %s", m.second, what, m)
		}
	}
	return first, count
}

func (m reported) String() string {
	var all []string
	for _, c := range m.status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(all, " ")
}

func TestARuleDetectsAWrongStatus(t *testing.T) {
	t.Parallel()
	says := func(condition string, status metav1.ConditionStatus, reason string) func(*reported) {
		return func(m *reported) {
			meta.SetStatusCondition(&m.status.Conditions, metav1.Condition{Type: condition, Status: status, Reason: reason})
		}
	}
	replicas := func(m *reported) { m.status.SpecReplicas = new(int32(77)) }
	ready := says(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaling)
	missed := func(reason string) func(*reported) {
		return says(v1alpha1.ConditionObjectiveMet, metav1.ConditionFalse, reason)
	}
	runs := map[string]*run{}
	hpa, stopped := hpaStops()
	runs[hpa.Name] = observe(t, hpa, stopped)
	for _, name := range []string{"step", "outage", "flood", "pods-pending-long", "ratelimit"} {
		runs[name] = observe(t, named(name), model.Span{})
	}
	for name, test := range map[string]struct {
		scenario string
		wrong    func(*reported)
		rule     rule
	}{
		"other replicas":                        {"step", replicas, (*run).numbers},
		"a hold that lowers":                    {"step", func(m *reported) { m.decision.Replicas /= 2 }, (*run).holds},
		"ready in an outage":                    {"outage", ready, (*run).readyUnknown},
		"ready without syncs of the autoscaler": {"hpa-stops", ready, (*run).readyNotFollowed},
		"not followed, and it is": {
			"step", says(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotFollowed), (*run).readyNotFollowed,
		},
		"ready without nodes": {"pods-pending-long", ready, (*run).readyNotStarting},
		"not starting, and they run": {
			"step", says(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonReplicasNotStarting),
			(*run).readyNotStarting,
		},
		"not limited at maxReplicas": {
			"flood", says(v1alpha1.ConditionScalingLimited, metav1.ConditionFalse, v1alpha1.ReasonDesiredWithinRange),
			(*run).limitedByMax,
		},
		"limited by maxReplicas at one replica": {
			"step", says(v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonTooManyReplicas),
			(*run).limitedByMax,
		},
		"missed, and nothing is late": {"step", missed(v1alpha1.ReasonCatchingUp), (*run).objectiveMissed},
		"met, and messages are late": {
			"ratelimit", says(v1alpha1.ConditionObjectiveMet, metav1.ConditionTrue, v1alpha1.ReasonWithinObjective),
			(*run).objectiveMet,
		},
		"missed without a reported limit": {"flood", missed(v1alpha1.ReasonTooFewPartitions), (*run).reasonOfOthers},
		"replicas start, and all consume": {"flood", missed(v1alpha1.ReasonReplicasStarting), (*run).reasonIsTrue},
		"messages fail, and none does":    {"flood", missed(v1alpha1.ReasonMessagesFail), (*run).reasonIsTrue},
	} {
		t.Run(name, func(t *testing.T) {
			r := *runs[test.scenario]
			r.reports = slices.Clone(r.reports)
			for i := range r.reports {
				r.reports[i].status = *r.reports[i].status.DeepCopy()
				test.wrong(&r.reports[i])
			}
			_, count := r.breaks(test.rule)
			require.Positive(t, count)
		})
	}
}
