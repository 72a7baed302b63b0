// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
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

// series is one row of the table: exactly one of value and labelled is set.
type series struct {
	name  string
	level Level
	// counter is false for a gauge.
	counter bool
	// unit is empty for a plain number.
	unit string
	help string
	// absent describes when there is no sample.
	absent string
	// value is the one sample of a record.
	value func(r *Record, now time.Time) backlog.Measurement
	// labels are those in addition to the record's own, sorted; labelled has their values.
	labels   []string
	labelled func(r *Record) []sample
}

// gauge is the usual row.
func gauge(name, unit, absent, help string, value func(*Record) backlog.Measurement) series {
	return series{
		name: name, unit: unit, absent: absent, help: help,
		value: func(r *Record, _ time.Time) backlog.Measurement { return value(r) },
	}
}

// Description of a series, for its documentation.
type Description struct {
	Name, Help string
	Labels     []string
	// Type is counter or gauge, Unit empty for a plain number, and Absent describes when there is no sample.
	Type, Unit, Absent string
	Level              Level
}

// Described returns all series of a policy.
func Described() []Description {
	var all []Description
	for _, s := range table() {
		d := Description{
			Name: policyPrefix + s.name, Help: s.help, Labels: append([]string{"namespace", "policy"}, s.labels...),
			Type: "gauge", Unit: s.unit, Absent: s.absent, Level: cmp.Or(s.level, Essential),
		}
		if s.counter {
			d.Type = "counter"
		}
		all = append(all, d)
	}
	return all
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

func table() []series {
	more := full()
	for i := range more {
		more[i].level = Full
	}
	return append(essential(), more...)
}

func essential() []series {
	return append([]series{
		{
			name: "info", help: "Target, mode and actuator of the policy; the actuator is HPA, KEDA, Direct or None. " +
				"Always 1.", absent: never, labels: []string{"actuator", "mode", "target", "target_kind"},
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
func outcomes() []series {
	return []series{
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
			name: "late_seconds_total", unit: "seconds", counter: true, absent: never,
			help: "Time in which messages missed the latency objective. Time in which the backlog is unknown does not count. " +
				"Starts at 0 when another replica takes over.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return backlog.Known(r.totals.lateSeconds) },
		},
		{
			name: "replica_seconds_total", unit: "replica seconds", counter: true, absent: never,
			help: "Running replicas, summed over time. Time in which they are unknown does not count. " +
				"Starts at 0 when another replica takes over.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return backlog.Known(r.totals.replicaSeconds) },
		},
		{
			name: "held", labels: []string{"reason"}, absent: "while the replicas are not held",
			help:     "Reason for a hold, as in status.decision.hold. Always 1.",
			labelled: func(r *Record) []sample { return inForce(r.held) },
		},
		{
			name: "limited", labels: []string{"by"}, absent: "while condition ScalingLimited is not True",
			help: "What limits the replicas: minReplicas, maxReplicas, partitions, or external if more replicas would " +
				"not process more messages. Always 1.",
			labelled: func(r *Record) []sample { return inForce(r.limited) },
		},
		{
			name: "condition", labels: []string{"reason", "status", "type"}, absent: "while all are as expected",
			help: "Conditions with an unexpected status: ScalingLimited and Stalled that are not False, others that are not " +
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
