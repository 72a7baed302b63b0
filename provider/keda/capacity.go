// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// learned is what strategy Capacity has found out for a trigger.
type learned struct {
	// state is for the goroutine of Run alone.
	state policy.State
	// due is when to decide again without news, and gist is of the last reading; for the goroutine of Run alone.
	due  time.Time
	gist gist

	// decision, or why there is none; both guarded by the memory's mu. Neither before the first.
	decision   policy.Decision
	noDecision error
	// at is when that was.
	at time.Time
}

// lesson is a trigger that learns.
type lesson struct {
	trigger Trigger
	learned *learned
}

// decision of a trigger that learns, which it begins to do when it is asked for. One that is older than freshFor counts
// for nothing: then nobody decides.
func (m *memory) decision(t Trigger, now time.Time, freshFor time.Duration) (decision policy.Decision, begun bool,
	err error,
) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.touch(t, now)
	if begun = e.learned == nil; begun {
		e.learned = &learned{}
	}
	switch l := e.learned; {
	case l.at.IsZero():
		return policy.Decision{}, begun, newFault(errUnknown, "nothing is decided yet: the first answer of Pulsar is awaited")
	case now.Sub(l.at) > freshFor:
		return policy.Decision{}, begun,
			newFault(errUnknown, "nothing was decided for %s", now.Sub(l.at).Truncate(time.Second))
	default:
		return l.decision, begun, l.noDecision
	}
}

// lessons are the triggers that learn.
func (m *memory) lessons() []lesson {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []lesson
	for at := m.recent.Front(); at != nil; at = at.Next() {
		if e := entryAt(at); e.learned != nil {
			all = append(all, lesson{e.trigger, e.learned})
		}
	}
	return all
}

// decided puts down how a decision ended.
func (m *memory) decided(l *learned, decision policy.Decision, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.decision, l.noDecision, l.at = decision, err, now
}

// gist of a reading is what news change. Of several topics At is that of the oldest answer.
type gist struct {
	at, instancesAt                    time.Time
	total, ready, published, processed float64
}

// gistOf leaves what is unknown at 0: it is compared, and nothing else.
func gistOf(r backlog.Reading) gist {
	g := gist{at: r.At, instancesAt: r.Instances.At}
	g.total, _ = r.Total.Value()
	g.ready, _ = r.Ready.Value()
	g.published, _ = r.PublishRate.Value()
	g.processed, _ = r.ProcessRate.Value()
	return g
}

// decide for the triggers that learn and that the news are about, or whose time has come.
func (s *Server) decide(n news, now time.Time) {
	for _, one := range s.memory.lessons() {
		due := n.all || !now.Before(one.learned.due)
		if due || n.about(one.trigger) {
			s.guard(one.trigger, func() { s.teach(one, due, now) })
		}
	}
}

// teach reads, decides and puts it down. Unless it is due, a reading that is the same as before is not decided on
// again: any news of a topic are about all objects, and a decision costs ten times as much as a reading.
func (s *Server) teach(one lesson, due bool, now time.Time) {
	next := now.Add(s.config.FreshFor / 3)
	if due {
		one.learned.due = next // even if it panics
	}
	var f facts
	f.reading, f.noReading = s.config.Signals.Read(one.trigger.Subject, now)
	seen := gistOf(f.reading)
	if !due && f.noReading == nil && seen == one.learned.gist {
		return
	}
	one.learned.due, one.learned.gist = next, seen
	// of which one partition is one replica's; others share all
	if f.noReading == nil && f.reading.Type == backlog.Failover {
		// gone since it was read: the next look says why
		f.partitions, _ = s.config.Signals.Partitions(one.trigger.Subject, now)
	}
	f.replicas, f.noReplicas = s.config.ScaledObjects.Replicas(one.trigger.Object)
	decision, after, err := learn(one.trigger, f, s.config.FreshFor, one.learned.state, now)
	one.learned.state = after
	s.memory.decided(one.learned, decision, err, now)
}

// learn decides, or says why it cannot. While nothing is known of the subject, what was decided before holds.
func learn(t Trigger, f facts, freshFor time.Duration, before policy.State, now time.Time) (policy.Decision,
	policy.State, error,
) {
	if f.noReplicas != nil {
		return policy.Decision{}, before, newFault(errUnknown, "replicas of ScaledObject %s: %s", t.Object, f.noReplicas)
	}
	in := input(t, f, freshFor, now)
	decision, after := policy.Decide(in, before)
	if in.Unknown != nil && decision.Replicas <= in.CurrentReplicas {
		return policy.Decision{}, after, unread(t.Subject, in.Unknown)
	}
	return decision, after, nil
}

// input is what a decision for a trigger rests on. KEDA has a cooldown of its own, so the last replica may go at once.
func input(t Trigger, f facts, freshFor time.Duration, now time.Time) policy.Input {
	noCooldown := int32(0)
	return policy.Input{
		Now: now, CurrentReplicas: f.replicas.Current, Reading: f.reading, Unknown: f.noReading, Partitions: f.partitions,
		FreshFor: freshFor,
		// it finds work with a replica of its own
		NeverZero: t.Subject.Target.Kind == "Source" || t.Subject.Component.Kind == function.KindSource,
		Spec: v1alpha1.AutoscalingPolicySpec{
			MinReplicas: &f.replicas.Least, MaxReplicas: f.replicas.Most,
			LatencyObjective: metav1.Duration{Duration: t.LatencyObjective},
			Strategies:       []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}},
			Behavior:         &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{CooldownPeriodSeconds: &noCooldown}},
			Mode:             v1alpha1.ModeAuto,
		},
	}
}
