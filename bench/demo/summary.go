// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

// Failures of the demo, reported after the summary.
var (
	errNeverScaledUp = errors.New("spec.replicas did not rise after the load stepped up")
	errNotBack       = errors.New("replicas did not return to one after the load fell")
	errUndone        = errors.New("published messages were not processed")
)

// outcome is the data for a summary.
type outcome struct {
	scenario     scenario
	begun, ended time.Time
	published    int64
	done, late   int
	p50, p99     time.Duration // of the time from publication to the end of processing
	waitKnown    bool          // false if no message was processed
	replicaTime  time.Duration
	timeline     []pods.Sample
	samples      []sample
	pulsar       string
	kubernetes   string
}

// summary is summary.json. Null is unknown: no message was processed, or replicas never rose.
type summary struct {
	MessagesPublished int64    `json:"messages_published"`
	MessagesDone      int64    `json:"messages_done"`
	MessagesLate      int64    `json:"messages_late"`
	ObjectiveSeconds  float64  `json:"objective_seconds"`
	ReplicaSeconds    float64  `json:"replica_seconds"`
	ReactionSeconds   *float64 `json:"reaction_seconds"`
	ReplicasMax       int      `json:"replicas_max"`
	ReplicasLast      int      `json:"replicas_last"`
	WaitP50Seconds    *float64 `json:"wait_p50_seconds"`
	WaitP99Seconds    *float64 `json:"wait_p99_seconds"`
	PulsarVersion     string   `json:"pulsar_version"`
	KubernetesVersion string   `json:"kubernetes_version"`
	DurationSeconds   float64  `json:"duration_seconds"`
	// Samples and Replicas are the charts of the page, which -from draws again.
	Samples  []point `json:"samples"`
	Replicas []step  `json:"replicas"`
}

// point is what was counted at a time since the start of the load, and the median latency of the messages processed
// since the one before; null without any.
type point struct {
	Seconds        float64  `json:"seconds"`
	Published      int64    `json:"published"`
	Done           int64    `json:"done"`
	LatencySeconds *float64 `json:"latency_p50_seconds"`
}

// step is the replicas from a time on.
type step struct {
	Seconds float64 `json:"seconds"`
	Desired int     `json:"desired"`
	Running int     `json:"running"`
}

func summarize(o outcome) summary {
	s := summary{
		MessagesPublished: o.published, MessagesDone: int64(o.done), MessagesLate: int64(o.late),
		ObjectiveSeconds: o.scenario.objective.Seconds(), ReplicaSeconds: rounded(o.replicaTime),
		PulsarVersion: o.pulsar, KubernetesVersion: o.kubernetes, DurationSeconds: rounded(o.ended.Sub(o.begun)),
	}
	if o.waitKnown {
		p50, p99 := rounded(o.p50), rounded(o.p99)
		s.WaitP50Seconds, s.WaitP99Seconds = &p50, &p99
	}
	timeline := testbed.Between(o.timeline, o.begun, o.ended)
	for _, one := range timeline {
		s.ReplicasMax = max(s.ReplicasMax, one.Desired)
		s.ReplicasLast = one.Desired
	}
	for _, one := range o.samples {
		p := point{Seconds: rounded(one.at), Published: one.published, Done: one.done}
		if one.waitKnown {
			p.LatencySeconds = new(rounded(one.wait))
		}
		s.Samples = append(s.Samples, p)
	}
	for _, one := range testbed.Between(o.timeline, o.begun, o.begun.Add(o.length())) {
		s.Replicas = append(s.Replicas, step{rounded(one.Time.Sub(o.begun)), one.Desired, one.Ready})
	}
	if reaction, rose := reaction(timeline, o.begun.Add(o.scenario.calm)); rose {
		seconds := rounded(reaction)
		s.ReactionSeconds = &seconds
	}
	return s
}

// length is that of the time axis.
func (o outcome) length() time.Duration {
	if len(o.samples) == 0 {
		return o.scenario.fall()
	}
	return o.samples[len(o.samples)-1].at
}

// rounded is in seconds with milliseconds.
func rounded(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// reaction is the time from step to the first larger spec.replicas.
func reaction(timeline []pods.Sample, step time.Time) (after time.Duration, rose bool) {
	before := 0
	for _, one := range timeline {
		switch {
		case !one.Time.After(step):
			before = one.Desired
		case one.Desired > before:
			return one.Time.Sub(step), true
		}
	}
	return 0, false
}

// verdict is nil if replicas followed the load.
func (s summary) verdict() error {
	var problems []error
	if s.ReactionSeconds == nil {
		problems = append(problems, errNeverScaledUp)
	} else if s.ReplicasLast > 1 {
		problems = append(problems, fmt.Errorf("%w: there are %d", errNotBack, s.ReplicasLast))
	}
	if undone := s.MessagesPublished - s.MessagesDone; undone > 0 {
		problems = append(problems, fmt.Errorf("%w: %d of %d", errUndone, undone, s.MessagesPublished))
	}
	return errors.Join(problems...)
}

// print writes the summary to a terminal.
func (s summary) print(out io.Writer) {
	lost := "none lost"
	if undone := s.MessagesPublished - s.MessagesDone; undone > 0 {
		lost = fmt.Sprintf("%d LOST OR IN THE BACKLOG", undone)
	}
	output.Printf(out, "\nSummary of %.0f s on Pulsar %s and Kubernetes %s\n", s.DurationSeconds, s.PulsarVersion,
		s.KubernetesVersion)
	output.Printf(out, "  messages   %d published, %d processed, %s\n", s.MessagesPublished, s.MessagesDone, lost)
	output.Printf(out, "  objective  %d messages took longer than %.0f s (%s)\n", s.MessagesLate, s.ObjectiveSeconds,
		share(s.MessagesLate, s.MessagesDone))
	output.Printf(out, "  wait       p50 %s, p99 %s from publication to the end of processing\n",
		seconds(s.WaitP50Seconds), seconds(s.WaitP99Seconds))
	output.Printf(out, "  reaction   %s from the step up to a larger spec.replicas\n", seconds(s.ReactionSeconds))
	output.Printf(out, "  replicas   %d at most, %d at the end; %.0f replica-seconds, "+
		"while %d all the time would take %.0f\n",
		s.ReplicasMax, s.ReplicasLast, s.ReplicaSeconds, s.ReplicasMax, float64(s.ReplicasMax)*s.DurationSeconds)
}

func share(part, whole int64) string {
	if whole == 0 {
		return "of none"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func seconds(value *float64) string {
	if value == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f s", *value)
}
