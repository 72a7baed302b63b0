// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// Page is the result as a document. Charts show the expected course.
func (r Result) Page() page.Page {
	f := r.Function
	summary := fmt.Sprintf("Load: %s. A replica processes %s messages/s (%s) and starts in %s s (%s). "+
		"%d to %d replicas. %s", r.Load, f.MessagesPerSecond.text("%.4g"), f.MessagesPerSecond.Source,
		f.StartSeconds.text("%.3g"), f.StartSeconds.Source, f.MinReplicas, f.MaxReplicas, r.verdict())
	for _, better := range r.Better {
		summary += " " + better + "."
	}
	rows := r.rows()
	last := len(rows[0]) - 1
	table := page.NewTable("Contenders", rows, last-1, last)
	p := page.Page{
		Title: r.title(), Summary: summary, Tables: []page.Table{table}, Scatter: r.scatter(), Charts: r.charts(),
	}
	if text := r.Check.text(); text != "" {
		p.Notes = append(p.Notes, text)
	}
	p.Notes = append(p.Notes, r.Notes...)
	p.Notes = append(p.Notes, "A policy on a recorded load, simulated. The model does not include bursts within a step "+
		"of the recording, pods that wait for a node, and messages that take longer than others.")
	return p
}

// title is the verdict, beside the recorded replicas, or KEDA if they are unknown.
func (r Result) title() string {
	ours, other, than := r.Contenders[0], r.Contenders[1], "KEDA's pulsar trigger"
	if last := r.Contenders[len(r.Contenders)-1]; last.Name == Recorded {
		other, than = last, "today"
	}
	return output.Verdict(r.Function.ObjectiveSeconds, ours.LateRatio.Expected, ours.ReplicaHours.Expected,
		other.ReplicaHours.Expected, than)
}

// scatter has the expected values.
func (r Result) scatter() *page.Scatter {
	s := page.Costs()
	for _, o := range r.Contenders {
		s.Add(o.Name, o.ReplicaHours.Expected, o.LateRatio.Expected)
	}
	return s
}

// charts of the load, the replicas, the backlog and the oldest message.
func (r Result) charts() []page.Chart {
	var start time.Time
	if r.Load.Start != nil {
		start = *r.Load.Start
	}
	arrivals := make([]float64, max(1, r.Load.Seconds))
	for at := range arrivals {
		arrivals[at] = r.rate(float64(at))
	}
	var courses []page.Course
	for _, o := range r.Contenders {
		courses = append(courses, page.Course{Name: o.Name, Replicas: o.replicas, Oldest: o.oldest, Backlog: o.backlog})
	}
	return page.Courses(start, arrivals, r.Function.ObjectiveSeconds, courses)
}
