// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Level selects the series of each policy.
type Level string

// The levels.
const (
	Essential Level = "Essential"
	Full      Level = "Full"
	Off       Level = "Off"
)

// Series is one row of the table: exactly one of value and labelled is set.
type Series struct {
	Name  string
	Level Level
	// Counter is false for a gauge.
	Counter bool
	// Unit is empty for a plain number.
	Unit string
	Help string
	// Absent describes when there is no sample.
	Absent string
	// value is the one sample of a record.
	value func(r *Record, now time.Time) backlog.Measurement
	// Labels are those in addition to the record's own, sorted; labelled has their values.
	Labels   []string
	labelled func(r *Record) []sample
}

// gauge is the usual row.
func gauge(name, unit, absent, help string, value func(*Record) backlog.Measurement) Series {
	return Series{
		Name: name, Unit: unit, Absent: absent, Help: help,
		value: func(r *Record, _ time.Time) backlog.Measurement { return value(r) },
	}
}

// sample has the values of its series' labels.
type sample struct {
	labels []string
	value  float64
}

const (
	noReading  = "while the backlog is unknown, or partly unknown"
	noDecision = "while nothing is decided, such as in mode Paused"
	never      = "never"
)

// Table has all series of a policy.
func Table() []Series {
	var all []Series
	for level, rows := range map[Level][]Series{Essential: essential(), Full: full()} {
		for _, row := range rows {
			row.Name, row.Level = "pulsar_autoscaler_policy_"+row.Name, level
			all = append(all, row)
		}
	}
	slices.SortFunc(all, func(a, b Series) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func essential() []Series {
	return append([]Series{
		{
			Name: "info", Help: "Target, mode and actuator of the policy; the actuator is HPA, KEDA, Direct or None. " +
				"Always 1.", Absent: never, Labels: []string{"actuator", "mode", "target", "target_kind"},
			labelled: func(r *Record) []sample {
				return []sample{{[]string{r.actuator, r.mode, r.target, r.targetKind}, 1}}
			},
		},
		gauge("min_replicas", "replicas", never, "spec.minReplicas, as active schedules narrow it.",
			func(r *Record) backlog.Measurement { return backlog.Known(float64(r.minReplicas)) }),
		gauge("max_replicas", "replicas", never, "spec.maxReplicas, as active schedules narrow it.",
			func(r *Record) backlog.Measurement { return backlog.Known(float64(r.maxReplicas)) }),
		gauge("desired_replicas", "replicas", noDecision,
			"Desired replicas of the last decision, which the autoscaler of the policy follows.",
			func(r *Record) backlog.Measurement { return r.desired }),
		gauge("spec_replicas", "replicas", "while there is no target",
			"spec.replicas of the target at the last reconcile.",
			func(r *Record) backlog.Measurement { return r.spec }),
		gauge("running_replicas", "replicas", "while neither pods nor the target's status can be read",
			"Running replicas at the last reconcile.",
			func(r *Record) backlog.Measurement { return r.running }),
		gauge("ready_messages", "messages", noReading, "Ready messages: the backlog without delayed messages.",
			func(r *Record) backlog.Measurement { return r.signals.ready }),
		gauge("publish_rate", "messages per second", noReading, "Messages published.",
			func(r *Record) backlog.Measurement { return r.signals.publishRate }),
		gauge("process_rate", "messages per second", noReading, "Messages processed.",
			func(r *Record) backlog.Measurement { return r.signals.processRate }),
		gauge("wait_seconds", "seconds", noReading+", or while none is processed",
			"Estimated wait of a message that is published now.",
			func(r *Record) backlog.Measurement { return r.signals.wait }),
		gauge("capacity_messages_per_second", "messages per second", "until it is measured",
			"Messages that one busy replica processes, as measured.",
			func(r *Record) backlog.Measurement { return r.capacity }),
	}, outcomes()...)
}

// outcomes returns series for the objective and for what limits or holds replicas.
func outcomes() []Series {
	return []Series{
		gauge("latency_objective_seconds", "seconds", never, "spec.latencyObjective.",
			func(r *Record) backlog.Measurement { return backlog.Known(r.objective.Seconds()) }),
		gauge("objective_met", "", "while the condition is Unknown",
			"1 while condition ObjectiveMet is True, and 0 while it is False.",
			func(r *Record) backlog.Measurement { return r.met }),
		gauge("objective_burn_rate", "ratio",
			"without spec.objectivePercent, and while it is unknown how many messages were late",
			"Messages of spec.objectiveWindow that were late, over those that spec.objectivePercent allows to be: "+
				"above 1, more were.",
			func(r *Record) backlog.Measurement { return r.burn }),
		{
			Name: "late_seconds_total", Unit: "seconds", Counter: true, Absent: never,
			Help: "Time in which messages missed the latency objective. Time in which the backlog is unknown does not count. " +
				"Starts at 0 when another replica takes over.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return backlog.Known(r.totals.lateSeconds) },
		},
		{
			Name: "replica_seconds_total", Unit: "replica seconds", Counter: true, Absent: never,
			Help: "Running replicas, summed over time. Time in which they are unknown does not count. " +
				"Starts at 0 when another replica takes over.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return backlog.Known(r.totals.replicaSeconds) },
		},
		{
			Name: "held", Labels: []string{"reason"}, Absent: "while the replicas are not held",
			Help:     "Reason for a hold, as in status.decision.hold. Always 1.",
			labelled: func(r *Record) []sample { return inForce(r.held) },
		},
		{
			Name: "limited", Labels: []string{"by"}, Absent: "while condition ScalingLimited is not True",
			Help: "What limits the replicas: minReplicas, maxReplicas, partitions, or external if more replicas would " +
				"not process more messages. Always 1.",
			labelled: func(r *Record) []sample { return inForce(r.limited) },
		},
		{
			Name: "condition", Labels: []string{"reason", "status", "type"}, Absent: "while all are as expected",
			Help: "Conditions with an unexpected status: ScalingLimited and Stalled that are not False, others that are not " +
				"True. Always 1.",
			labelled: func(r *Record) []sample {
				found := make([]sample, 0, len(r.conditions))
				for _, c := range r.conditions {
					found = append(found, sample{[]string{c.reason, c.status, c.name}, 1})
				}
				return found
			},
		},
	}
}

// inForce is one sample of the name; none if it is empty.
func inForce(name string) []sample {
	if name == "" {
		return nil
	}
	return []sample{{[]string{name}, 1}}
}
