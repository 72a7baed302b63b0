// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func (e explanation) text(width int) string {
	sections := []section{e.policySection()}
	if e.lastDecision != nil {
		sections = append(sections, e.measuredSection(), e.learnedSection(), e.decidedSection(), e.changesSection(),
			e.WrittenBy.section(), e.Replicas.section(e.readAt), e.attentionSection())
	}
	if e.past != nil {
		sections = append(sections, e.sections()...)
	}
	return text(sections, width)
}

func (e explanation) policySection() section {
	s := section{title: "POLICY", note: e.Namespace + "/" + e.Name}
	s.add("target", "%s", cmp.Or(e.Target, "unknown"))
	s.add("replicas", "%d to %d", e.MinReplicas, e.MaxReplicas)
	for _, name := range e.ActiveSchedules {
		s.add("schedule", "%s is active", name)
	}
	s.add("objective", "%s", short(e.LatencyObjectiveSeconds))
	s.add("mode", "%s", e.Mode)
	if seen := e.ObservedGeneration; seen != 0 && seen != e.Generation {
		s.add("status", "it describes generation %d of the spec, which has generation %d by now", seen, e.Generation)
	}
	return s
}

func (e explanation) measuredSection() section {
	m := e.Measured
	if m == nil {
		return section{title: "MEASURED", note: "nothing"}
	}
	s := section{title: "MEASURED", note: e.age(*m.MeasuredAt)}
	backlog := number(m.ReadyMessages, "messages")
	if m.DiscountedMessages != nil && m.ReadyMessages != nil {
		backlog += fmt.Sprintf(", of which %d do not count as work", *m.DiscountedMessages)
	}
	s.add("backlog", "%s", backlog)
	s.add("arriving", "%s", rate(m.PublishedMessagesPerSecond))
	s.add("processed", "%s", rate(m.ProcessedMessagesPerSecond))
	s.add("window", "rates cover the --rate-window of the adapter until then")
	s.add("consumers", "%s", number(m.Consumers, "connected replicas"))
	if m.WaitSeconds != nil {
		s.add("wait", "%s for a message published now, %.0f%% of the objective", short(*m.WaitSeconds),
			*m.WaitPercent)
	} else {
		s.add("wait", "unknown")
	}
	if c := m.Coverage; c == nil {
		s.add("topics", "all are known")
	} else {
		s.add("topics", "%d of %d are known, so the numbers are lower bounds", c.KnownTopics, c.Topics)
		for _, topic := range c.Missing {
			s.add("missing", "%s: %s", topic.Name, topic.Message)
		}
	}
	return s
}

func (e explanation) learnedSection() section {
	l := e.Learned
	if l == nil {
		return section{title: "LEARNED", note: "nothing yet"}
	}
	s := section{title: "LEARNED", note: e.age(l.LearnedAt)}
	capacity := rate(&l.MessagesPerSecondPerReplica) + " by a replica that is busy"
	if l.UncertaintyPercent != nil {
		capacity += fmt.Sprintf(", ±%d%% (one standard deviation)", *l.UncertaintyPercent)
	}
	s.add("capacity", "%s, from %d observations", capacity, l.Observations)
	if l.MeasuredBusyPercent != nil {
		s.add("busy", "a replica that always has work reports to be busy %d%% of the time", *l.MeasuredBusyPercent)
	}
	return s
}

func (e explanation) decidedSection() section {
	d := e.Decided
	if d == nil {
		return section{title: "DECIDED", note: "nothing"}
	}
	s := section{title: "DECIDED", note: e.age(d.DecidedAt)}
	s.add("replicas", "%s", number(e.Replicas.Decided, ""))
	if d.Strategy != "" {
		s.add("strategy", "%s", d.Strategy)
	}
	if d.Equation != "" {
		s.add("equation", "%s", d.Equation)
	}
	switch d.LimitedBy {
	case "":
	case decide.CappedByMax:
		s.add("limited by", "maxReplicas, which is %d", e.MaxReplicas)
	case decide.CappedByMin:
		s.add("limited by", "minReplicas, which is %d", e.MinReplicas)
	default:
		s.add("limited by", "%s", d.LimitedBy)
	}
	if f := d.Expected; f != nil {
		s.add("expected", "%s at %s, %s earlier or later: %d of the last %d came when they were expected",
			rate(&f.PublishedMessagesPerSecond), f.BeginsAt.UTC().Format(time.DateTime), short(f.WithinSeconds),
			f.Foreseen, f.Of)
	}
	if a := d.Attainment; a != nil && d.ObjectivePercent != nil {
		s.add("in time", "%d%% of the messages, at least %d%% have to be: %d%% of the budget for late ones is left",
			a.Percent, *d.ObjectivePercent, a.BudgetLeftPercent)
	}
	if len(d.PassedGuards) > 0 {
		s.add("guards", "tried, and did not hold: %s", strings.Join(d.PassedGuards, ", "))
	}
	if d.HeldBy != nil {
		s.add("held by", "%s: %s", d.HeldBy.Reason, d.HeldBy.Message)
	} else {
		s.add("held by", "nothing")
	}
	return s
}

func (e explanation) changesSection() section {
	s := section{title: "TO CHANGE IT"}
	if e.Decided == nil {
		s.note = "there is no decision: see ATTENTION"
	}
	for _, c := range e.Changes {
		s.add(c.What, "%s", c.How)
	}
	return s
}

func (w writer) section() section {
	s := section{title: "WRITTEN BY", note: cmp.Or(string(w.Actuator), "nothing")}
	if w.HorizontalPodAutoscaler != "" {
		s.add("object", "HorizontalPodAutoscaler %s", w.HorizontalPodAutoscaler)
	}
	if w.ScaledObject != "" {
		s.add("object", "ScaledObject %s", w.ScaledObject)
	}
	if w.Reason != "" || w.Actuator != "" {
		s.add("reason", "%s", cmp.Or(w.Reason, "unknown"))
	}
	if t := w.Suspended; t != nil {
		if t.MaxReplicas != nil {
			s.add("suspended", "Function Mesh's autoscaler, with maxReplicas %d", *t.MaxReplicas)
		}
		if n := len(t.HorizontalPodAutoscalers); n > 0 {
			s.add("suspended", "%d HorizontalPodAutoscalers, see status.takenOver", n)
		}
		for _, name := range t.ScaledObjects {
			s.add("suspended", "ScaledObject %s", name)
		}
	}
	return s
}

func (r replicas) section(now time.Time) section {
	s := section{title: "REPLICAS"}
	s.add("decided", "%s", number(r.Decided, ""))
	s.add("in the spec", "%s", number(r.Spec, ""))
	s.add("running", "%s", number(r.Running, ""))
	s.add("consuming", "%s", number(r.Consuming, ""))
	if start := r.Start; start != nil {
		download := ""
		if start.PackageSeconds != nil {
			download = fmt.Sprintf("package %ds, ", *start.PackageSeconds)
		}
		s.add("start", "%ds, median of %d: scheduling %ds, init containers %ds, containers %ds, %sprogram %ds",
			start.TotalSeconds, start.Replicas, start.SchedulingSeconds, start.InitContainersSeconds, start.ContainersSeconds,
			download, start.ProgramSeconds)
	}
	if last := r.LastScaleDown; last != nil {
		s.add("removed", "%d, %s ago; redelivered: %s", last.RemovedReplicas, ago(last.Time.Time, now),
			number(last.RedeliveredMessages, "messages"))
	}
	return s
}

func (e explanation) attentionSection() section {
	s := section{title: "ATTENTION"}
	for _, c := range e.Attention {
		since := ""
		if c.LastTransitionTime.Unix() > 0 { // the API server's default has no time
			since = " for " + ago(c.LastTransitionTime.Time, e.readAt)
		}
		s.add(c.Type, "%s%s (%s): %s", c.Status, since, c.Reason, c.Message)
	}
	if len(e.NotChecked) > 0 {
		s.add("not checked", "%s", strings.Join(e.NotChecked, ", "))
	}
	switch {
	case !e.hasStatus:
		s.note = "the policy has no status: check that the adapter runs"
	case len(s.lines) == 0:
		s.note = "nothing: all conditions are as they should be"
	}
	return s
}

func (p *past) sections() (all []section) {
	if p.Recorded != nil {
		all = append(all, p.Recorded.section("at "+p.At.UTC().Format(time.RFC3339)))
	}
	s := section{title: "EVENTS", note: "until " + p.At.UTC().Format(time.RFC3339) + ", the newest first"}
	for _, e := range p.Events {
		times := ""
		if e.Until != nil {
			times = fmt.Sprintf(" (%d times until %s)", e.Times, e.Until.Format(time.TimeOnly))
		}
		s.add(e.Time.Format(time.TimeOnly), "%s: %s%s", e.Reason, e.Message, times)
	}
	if len(p.Events) == 0 {
		s.add("none", "Kubernetes keeps events for an hour, unless the API server has another --event-ttl")
	}
	return append(all, s)
}

func (r *recorded) section(at string) section {
	s := section{title: "RECORDED", note: at}
	if r.isEmpty {
		s.note = "Prometheus has no series of the policy " + at
		return s
	}
	listed := func(all []string) string { return cmp.Or(strings.Join(all, ", "), "nothing") }
	s.add("mode", "%s", listed(r.Modes))
	s.add("backlog", "%s", number(r.ReadyMessages, "messages"))
	s.add("arriving", "%s", decimal(r.PublishedMessagesPerSecond, "messages/s"))
	s.add("processed", "%s", decimal(r.ProcessedMessagesPerSecond, "messages/s"))
	s.add("wait", "%s of %s", decimal(r.WaitSeconds, "s"), decimal(r.LatencyObjectiveSeconds, "s"))
	s.add("capacity", "%s", decimal(r.MessagesPerSecondPerReplica, "messages/s by a replica that is busy"))
	s.add("decided", "%s, of %s to %s", decimal(r.DesiredReplicas, ""), decimal(r.MinReplicas, ""),
		decimal(r.MaxReplicas, ""))
	s.add("in the spec", "%s", decimal(r.SpecReplicas, ""))
	s.add("running", "%s", decimal(r.RunningReplicas, ""))
	s.add("held by", "%s", listed(r.HeldBy))
	s.add("limited by", "%s", listed(r.LimitedBy))
	s.add("attention", "%s", listed(r.Attention))
	return s
}

// age is how long ago something was, and when.
func (e explanation) age(at metav1.Time) string {
	return ago(at.Time, e.readAt) + " ago, at " + at.UTC().Format(time.RFC3339)
}

// known is the text of a value that may be unknown.
func known[T any](value *T, text func(T) string) string {
	if value == nil {
		return "unknown"
	}
	return text(*value)
}

func number[T int32 | int64](value *T, unit string) string {
	return known(value, func(n T) string { return strings.TrimRight(fmt.Sprintf("%d %s", n, unit), " ") })
}

func rate(perSecond *float64) string {
	return known(perSecond, func(r float64) string { return v1alpha1.NewRate(r).String() + " messages/s" })
}

// decimal has four digits.
func decimal(value *float64, unit string) string {
	return known(value, func(d float64) string {
		return strings.TrimRight(strconv.FormatFloat(d, 'g', 4, 64)+" "+unit, " ")
	})
}

type section struct {
	title, note string
	lines       []line
}

type line struct{ label, text string }

func (s *section) add(label, format string, args ...any) {
	s.lines = append(s.lines, line{label, fmt.Sprintf(format, args...)})
}

// Column widths of an explanation.
const (
	labelWidth   = 12
	defaultWidth = 80
	minWidth     = 40
)

// text wraps at width columns.
func text(sections []section, width int) string {
	var text strings.Builder
	for _, s := range sections {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(row(line{s.title, s.note}, "", width))
		for _, l := range s.lines {
			text.WriteString(row(l, "  ", width))
		}
	}
	return text.String()
}

// row is a line, with its text wrapped beside the label.
func row(l line, indent string, width int) string {
	margin := labelWidth + 2 // of the indent
	begin := fmt.Sprintf("%-*s", margin, indent+l.label)
	if len(strings.TrimRight(begin, " ")) >= margin {
		begin += "\n" + strings.Repeat(" ", margin)
	}
	beside := strings.Repeat(" ", margin)
	lines := strings.TrimPrefix(output.Wrap(l.text, beside, beside, width), beside)
	return strings.TrimRight(begin+lines, " ") + "\n"
}
