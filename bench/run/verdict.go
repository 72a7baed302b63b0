// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// Outcome is the outcome of a run.
type Outcome string

// The outcomes.
const (
	// Met: the first contender exceeded no limit.
	Met Outcome = "Met"
	// Missed: the first contender exceeded a limit.
	Missed Outcome = "Missed"
	// NotMeasured: the tool was the bottleneck, or replicas processed nothing, so the figures say nothing of autoscalers.
	NotMeasured Outcome = "NotMeasured"
)

// Exit codes of a run, for pipelines.
const (
	ExitMet         = 0
	ExitMissed      = 1
	ExitUsage       = 2
	ExitNotMeasured = 3
)

// Verdict compares the first contender with the limits.
type Verdict struct {
	Outcome Outcome `json:"outcome"`
	// Reason is why nothing was measured.
	Reason string  `json:"reason,omitempty"`
	Checks []Check `json:"checks,omitempty"`
}

// Check is a limit and the measured value, as texts.
type Check struct {
	Name     string `json:"name"`
	Limit    string `json:"limit"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// ExitCode is the exit code of the program.
func (v Verdict) ExitCode() int {
	switch v.Outcome {
	case Met:
		return ExitMet
	case Missed:
		return ExitMissed
	default:
		return ExitNotMeasured
	}
}

// Text describes the verdict.
func (v Verdict) Text() string {
	switch {
	case v.Outcome == NotMeasured:
		return "could not be measured: " + v.Reason
	case len(v.Checks) == 0:
		return "the scenario has no limits"
	case v.Outcome == Met:
		return "all limits are met"
	default:
		return "a limit was exceeded"
	}
}

// judge compares the first contender with the limits. If the tool was the bottleneck for any contender, or replicas of
// any processed nothing, nothing was measured.
func judge(contenders []Contender, limits scenario.Limits) Verdict {
	v := Verdict{Outcome: Met, Checks: checks(contenders[0], limits)}
	for _, check := range v.Checks {
		if !check.Met {
			v.Outcome = Missed
		}
	}
	for _, c := range contenders {
		if reason := cmp.Or(c.Stalled, c.Messages.Bottleneck); reason != "" {
			v.Outcome, v.Reason = NotMeasured, fmt.Sprintf("%s: %s", c.Name, reason)
		}
	}
	return v
}

func checks(c Contender, l scenario.Limits) []Check {
	var all []Check
	if l.MaxLateRatio != nil {
		all = append(all, Check{
			"late messages", percent(*l.MaxLateRatio) + " %", percent(c.Messages.LateRatio) + " %",
			c.Messages.LateRatio <= *l.MaxLateRatio,
		})
	}
	if l.MaxP99 != nil {
		all = append(all, p99(c, l.MaxP99.Duration))
	}
	if l.MaxReplicaHours != nil {
		all = append(all, Check{
			"replica-hours", decimals(*l.MaxReplicaHours, 3), decimals(c.Usage.ReplicaHours, 3),
			c.Usage.ReplicaHours <= *l.MaxReplicaHours,
		})
	}
	if l.MaxScaleChanges != nil {
		all = append(all, Check{
			"scale changes", strconv.Itoa(*l.MaxScaleChanges), strconv.Itoa(c.Usage.ScaleChanges),
			c.Usage.ScaleChanges <= *l.MaxScaleChanges,
		})
	}
	if l.MaxDuplicates != nil {
		again := c.Messages.Duplicates
		all = append(all, Check{
			"duplicate results", whole(*l.MaxDuplicates), output.Whole(again), again != nil && *again <= *l.MaxDuplicates,
		})
	}
	return all
}

// p99 is above any limit if more than 1 % of messages have no result: the percentile of the others says nothing.
func p99(c Contender, limit time.Duration) Check {
	check := Check{Name: "latency p99", Limit: limit.String()}
	if missing := c.Messages.Due - c.Messages.Done; missing*100 > c.Messages.Due || c.Messages.Done == 0 {
		check.Measured = fmt.Sprintf("unknown, %d of %d messages have no result", missing, c.Messages.Due)
		return check
	}
	check.Measured = c.Messages.Latencies.P99.Round(time.Millisecond).String()
	check.Met = c.Messages.Latencies.P99 <= limit
	return check
}
