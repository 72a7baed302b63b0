// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
)

func full() []Series {
	return append([]Series{
		gauge("wanted_replicas", "replicas", "while no strategy can compute a number",
			"Replicas that the strategies recommend, before bounds and holds.",
			func(r *Record) backlog.Measurement { return r.wanted }),
		gauge("consumers", "consumers", noReading, "Connected consumers, each counted once.",
			func(r *Record) backlog.Measurement { return r.signals.consumers }),
		gauge("discounted_messages", "messages", "while the backlog is unknown",
			"Ready messages that do not count as work, because replicas were idle meanwhile.",
			func(r *Record) backlog.Measurement { return r.signals.discounted }),
		gauge("delayed_messages", "messages", noReading, "Delayed messages, as far as the broker has read.",
			func(r *Record) backlog.Measurement { return r.signals.delayed }),
		gauge("unacked_messages", "messages", noReading+", and of Exclusive and Failover subscriptions",
			"Messages delivered to consumers and not acknowledged.",
			func(r *Record) backlog.Measurement { return r.signals.unacked }),
		{
			Name: "redelivered_messages_total", Unit: "messages", Counter: true,
			Absent: noReading + ", and of Exclusive and Failover subscriptions",
			Help: "Messages that consumers had not acknowledged when they left: scale-downs, restarts and lost " +
				"connections. Starts at 0 when another replica takes over.",
			value: func(r *Record, _ time.Time) backlog.Measurement { return r.signals.redelivered },
		},
		gauge("starved_replicas", "replicas", noReading,
			"Replicas without messages while others hold the backlog in their receive queues "+
				"(ReplicasStarved); 0 for none.",
			func(r *Record) backlog.Measurement { return r.starved }),
		gauge("oldest_message_age_seconds", "seconds", noReading,
			"Time since the oldest message of the backlog was published, as last measured; 0 without a backlog.",
			func(r *Record) backlog.Measurement { return r.signals.age }),
		gauge("capacity_uncertainty_ratio", "ratio", "until the capacity is measured",
			"One standard deviation of capacity_messages_per_second, as a share of it.",
			func(r *Record) backlog.Measurement { return r.uncertainty }),
		gauge("busy_ratio", "ratio", "while no instance reports it",
			"Mean share of the time that an instance spends in calls of the function.",
			func(r *Record) backlog.Measurement { return r.signals.busy }),
	}, append(forecasts(), ages()...)...)
}

// forecasts returns series for the load that is expected next.
func forecasts() []Series {
	const none = "while no load is expected"
	expected := func(value func(next forecast.Next, now time.Time) float64) func(*Record, time.Time) backlog.Measurement {
		return func(r *Record, now time.Time) backlog.Measurement {
			if r.next == nil {
				return backlog.Unknown(backlog.ErrNoData)
			}
			return backlog.Known(value(*r.next, now))
		}
	}
	return []Series{
		{
			Name: "forecast_publish_rate", Unit: "messages per second", Absent: none,
			Help:  "Messages published during the load that is expected next.",
			value: expected(func(next forecast.Next, _ time.Time) float64 { return next.PerSecond }),
		},
		{
			Name: "forecast_seconds", Unit: "seconds", Absent: none,
			Help:  "Time until the load that is expected next; negative once it is late.",
			value: expected(func(next forecast.Next, now time.Time) float64 { return next.Begin.Sub(now).Seconds() }),
		},
		{
			Name: "forecast_foreseen_ratio", Unit: "ratio", Absent: none,
			Help: "Share of the last loads, up to 40, that began when they were expected.",
			value: expected(func(next forecast.Next, _ time.Time) float64 {
				return float64(next.Foreseen) / max(1, float64(next.Of))
			}),
		},
	}
}

// ages returns series for the age of the data and for changes of replicas.
func ages() []Series {
	return []Series{
		{
			Name: "scale_events_total", Counter: true, Labels: []string{"by", "direction"},
			Absent: "until replicas change",
			Help: "Changes of spec.replicas of the target by direction (Up, Down) and by writer: HPA, KEDA, Direct, " +
				"External, or Unknown if it was not looked up. Starts at 0 when another replica takes over.",
			labelled: func(r *Record) []sample {
				var all []sample
				for _, c := range slices.SortedFunc(maps.Keys(r.totals.changes), change.compare) {
					all = append(all, sample{[]string{c.by, c.direction}, r.totals.changes[c]})
				}
				return all
			},
		},
		{
			Name: "decision_age_seconds", Unit: "seconds", Absent: noDecision,
			Help:  "Time since the last decision.",
			value: func(r *Record, now time.Time) backlog.Measurement { return since(r.decidedAt, now) },
		},
		{
			Name: "reading_age_seconds", Unit: "seconds", Absent: "while the backlog is unknown",
			Help:  "Time since the oldest part of the last decision's reading was measured.",
			value: func(r *Record, now time.Time) backlog.Measurement { return since(r.readAt, now) },
		},
		gauge("actuation_lag_seconds", "seconds", "until it is measured, and while the controller writes replicas itself",
			"status.actuator.lag: how long the autoscaler takes to set a decided number.",
			func(r *Record) backlog.Measurement { return r.lag }),
		gauge("coverage_ratio", "ratio", "while the backlog is unknown",
			"Share of the input topics that are known with all their partitions.",
			func(r *Record) backlog.Measurement { return r.coverage }),
	}
}

func since(at, now time.Time) backlog.Measurement {
	if at.IsZero() {
		return backlog.Measurement{}
	}
	return backlog.Known(max(0, now.Sub(at).Seconds()))
}
