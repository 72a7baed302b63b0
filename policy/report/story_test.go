// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

// story is a policy that is reconciled every 10 s, with its status written if it differs.
type story struct {
	o       plan.Observed
	history report.History
	d       decided
	// status is the last written one, and shown the last one.
	status, shown v1alpha1.AutoscalingPolicyStatus
	writes        int
	// stale is the age of the reading.
	stale time.Duration
	// events since the last call of newEvents.
	events []storyEvent
}

type storyEvent struct {
	report.Event
	at time.Time
}

// begun is the story of a policy with a target of 10 replicas, as decided, which meet the objective.
func begun(t testing.TB) *story {
	t.Helper()
	s := &story{o: outcome(t, 10)}
	saying(&s.o, corev1.ConditionTrue, "ValidMetricFound", "the HPA was able to")
	s.d.Decision = policy.Decision{Replicas: 10}
	s.d.Reading = reading(100, 50)
	s.serve(policy.ObjectiveMet)
	s.goOn(time.Minute)
	require.Equal(t, "True/Scaling", s.says(v1alpha1.ConditionReady))
	require.Equal(t, "True/WithinObjective", s.says(v1alpha1.ConditionObjectiveMet))
	return s
}

func (s *story) serve(objective policy.Objective) { s.d.Decision.Service.Objective = objective }

// goOn reconciles for a time.
func (s *story) goOn(d time.Duration) {
	for end := s.o.Now.Add(d); s.o.Now.Before(end); {
		s.o.Now = s.o.Now.Add(10 * time.Second)
		s.reconcile()
	}
}

func (s *story) reconcile() {
	s.d.Reading.At, s.d.Decision.Time, s.d.Decision.Service.At = s.o.Now.Add(-s.stale), s.o.Now, s.o.Now
	s.o.Reading = &s.d.Reading
	if s.o.Unknown != nil {
		s.o.Reading, s.d.Decision.Service = nil, policy.Service{}
	}
	s.history = s.history.Decided(s.o, &s.d.Decision)
	s.shown = statusAfter(s.status, s.o, s.history, &s.d)
	due := s.o
	due.Policy = s.o.Policy.DeepCopy()
	due.Policy.Status = s.status
	written := s.status
	if report.Due(due, s.history, s.shown) {
		written = s.shown
		s.history = s.history.Reported(s.o.Now, s.status, s.shown)
		s.writes++
	}
	events, history := report.Events(due, s.history, written)
	for _, e := range events {
		s.events = append(s.events, storyEvent{e, s.o.Now})
	}
	s.history, s.status = history, written
}

// newEvents returns and forgets the events as Type Reason Note.
func (s *story) newEvents() []string {
	var all []string
	for _, e := range s.events {
		all = append(all, e.Type+" "+e.Reason+" "+e.Note)
	}
	s.events = nil
	return all
}

// anotherProcess keeps only what was written.
func (s *story) anotherProcess() { s.history = report.History{} }

// says is a condition as Status/Reason.
func (s *story) says(name string) string {
	c := meta.FindStatusCondition(s.shown.Conditions, name)
	return string(c.Status) + "/" + c.Reason
}

func (s *story) message(name string) string {
	return meta.FindStatusCondition(s.shown.Conditions, name).Message
}
