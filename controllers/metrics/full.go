// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
)

func full() []series {
	return append([]series{
		{
			name: "wanted_replicas", level: Full, unit: "replicas", absent: "while no strategy can compute a number",
			help:  "Replicas that the strategies recommend, before bounds and holds.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.wanted },
		},
		{
			name: "consumers", level: Full, unit: "consumers", absent: noReading,
			help:  "Connected consumers, each counted once.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.signals.consumers },
		},
		{
			name: "discounted_messages", level: Full, unit: "messages", absent: "while the backlog is unknown",
			help:  "Ready messages that do not count as work, because replicas were idle meanwhile.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.signals.discounted },
		},
		{
			name: "delayed_messages", level: Full, unit: "messages", absent: noReading,
			help:  "Delayed messages, as far as the broker has read.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.signals.delayed },
		},
		{
			name: "unacked_messages", level: Full, unit: "messages",
			absent: noReading + ", and of Exclusive and Failover subscriptions",
			help:   "Messages delivered to consumers and not acknowledged.",
			value:  func(r *Record, _ time.Time) backlog.Measurement { return r.signals.unacked },
		},
		{
			name: "redelivered_messages_total", level: Full, unit: "messages", counter: true,
			absent: noReading + ", and of Exclusive and Failover subscriptions",
			help: "Messages that consumers had not acknowledged when they left: scale-downs, restarts and lost " +
				"connections. Starts at 0 when another replica takes over.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.signals.redelivered },
		},
		{
			name: "starved_replicas", level: Full, unit: "replicas", absent: noReading,
			help: "Replicas without messages while others hold the backlog in their receive queues " +
				"(ReplicasStarved); 0 for none.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.starved },
		},
		{
			name: "oldest_message_age_seconds", level: Full, unit: "seconds", absent: noReading,
			help:  "Time since the oldest message of the backlog was published, as last measured; 0 without a backlog.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.signals.age },
		},
		{
			name: "capacity_uncertainty_ratio", level: Full, unit: "ratio", absent: "until the capacity is measured",
			help:  "One standard deviation of capacity_messages_per_second, as a share of it.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.uncertainty },
		},
		{
			name: "busy_ratio", level: Full, unit: "ratio", absent: "while no instance reports it",
			help:  "Mean share of the time that an instance spends in calls of the function.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.signals.busy },
		},
	}, append(forecasts(), ages()...)...)
}

// forecasts returns series for the load that is expected next.
func forecasts() []series {
	const none = "while no load is expected"
	expected := func(value func(next forecast.Next, now time.Time) float64) func(*Record, time.Time) backlog.Measurement {
		return func(r *Record, now time.Time) backlog.Measurement {
			if r.next == nil {
				return backlog.Unknown(backlog.ErrNoData)
			}
			return backlog.Known(value(*r.next, now))
		}
	}
	return []series{
		{
			name: "forecast_publish_rate", level: Full, unit: "messages per second", absent: none,
			help:  "Messages published during the load that is expected next.",
			value: expected(func(next forecast.Next, _ time.Time) float64 { return next.PerSecond }),
		},
		{
			name: "forecast_seconds", level: Full, unit: "seconds", absent: none,
			help:  "Time until the load that is expected next; negative once it is late.",
			value: expected(func(next forecast.Next, now time.Time) float64 { return next.Begin.Sub(now).Seconds() }),
		},
		{
			name: "forecast_foreseen_ratio", level: Full, unit: "ratio", absent: none,
			help: "Share of the last loads, up to 40, that began when they were expected.",
			value: expected(func(next forecast.Next, _ time.Time) float64 {
				return float64(next.Foreseen) / max(1, float64(next.Of))
			}),
		},
	}
}

// ages returns series for the age of the data and for changes of replicas.
func ages() []series {
	return []series{
		{
			name: "scale_events_total", level: Full, counter: true, labels: []string{"by", "direction"},
			absent: "until replicas change",
			help: "Changes of spec.replicas of the target by direction (Up, Down) and by writer: HPA, KEDA, Direct, " +
				"External, or Unknown if it was not looked up. Starts at 0 when another replica takes over.",
			labelled: func(r *Record) []sample {
				var all []sample
				for c, times := range r.totals.changes {
					all = append(all, sample{[]string{c.by, c.direction}, times})
				}
				return all
			},
		},
		{
			name: "decision_age_seconds", level: Full, unit: "seconds", absent: noDecision,
			help:  "Time since the last decision.",
			value: func(r *Record, now time.Time) backlog.Measurement { return since(r.decidedAt, now) },
		},
		{
			name: "reading_age_seconds", level: Full, unit: "seconds", absent: "while the backlog is unknown",
			help:  "Time since the oldest part of the last decision's reading was measured.",
			value: func(r *Record, now time.Time) backlog.Measurement { return since(r.readAt, now) },
		},
		{
			name: "actuation_lag_seconds", level: Full, unit: "seconds",
			absent: "until it is measured, and while the controller writes replicas itself",
			help:   "status.actuator.lag: how long the autoscaler takes to set a decided number.",
			value:  func(r *Record, _ time.Time) backlog.Measurement { return r.lag },
		},
		{
			name: "coverage_ratio", level: Full, unit: "ratio", absent: "while the backlog is unknown",
			help:  "Share of the input topics that are known with all their partitions.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.coverage },
		},
	}
}

func since(at, now time.Time) backlog.Measurement {
	if at.IsZero() {
		return backlog.Measurement{}
	}
	return backlog.Known(max(0, now.Sub(at).Seconds()))
}
