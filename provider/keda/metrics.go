// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

type metrics struct {
	requests *prometheus.CounterVec   // by method and code
	duration *prometheus.HistogramVec // by method
	streams  *prometheus.GaugeVec     // by method
}

func newMetrics(registerer prometheus.Registerer, held func() int) *metrics {
	factory := promauto.With(registerer)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pulsar_autoscaler_keda_held_triggers", Help: "Triggers with held replicas: unknown, at least in part.",
	}, func() float64 { return float64(held()) })
	return &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_keda_requests_total",
			Help: "Completed requests and ended streams of KEDA, by method and gRPC code.",
		}, []string{"method", "code"}),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_keda_request_duration_seconds",
			Help:    "Time from a request of KEDA to its response, without streams.",
			Buckets: response.Buckets(),
		}, []string{"method"}),
		streams: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pulsar_autoscaler_keda_streams", Help: "Open streams to KEDA.",
		}, []string{"method"}),
	}
}

// maxShown bounds the triggers with series: a scrape of them has about 8 MB.
const maxShown = 10_000

// triggerSeries exports the signals of recently requested triggers, read from the cache at each scrape. Triggers of
// policies have none: the adapter exports their policies.
type triggerSeries struct {
	last    *lastSamples
	signals Signals
	rows    []triggerRow
	held    *prometheus.Desc
}

type triggerRow struct {
	desc  *prometheus.Desc
	value func(backlog.Reading) backlog.Measurement
}

func newTriggerSeries(last *lastSamples, signals Signals) *triggerSeries {
	desc := func(name, help string) *prometheus.Desc {
		const of = " Of triggers without a policy that KEDA requested in the last 10 minutes, up to 10,000."
		return prometheus.NewDesc("pulsar_autoscaler_trigger_"+name, help+of,
			[]string{"namespace", "scaled_object", "subject"}, nil)
	}
	return &triggerSeries{
		last: last, signals: signals, held: desc("held", "Triggers with held replicas: unknown, at least in part. Always 1."),
		rows: []triggerRow{
			{
				desc("ready_messages", "Ready messages: the backlog without delayed messages."),
				func(r backlog.Reading) backlog.Measurement { return r.Ready },
			},
			{
				desc("publish_rate", "Messages published."),
				func(r backlog.Reading) backlog.Measurement { return r.PublishRate },
			},
			{
				desc("process_rate", "Messages processed."),
				func(r backlog.Reading) backlog.Measurement { return r.ProcessRate },
			},
		},
	}
}

// Describe implements prometheus.Collector.
func (s *triggerSeries) Describe(to chan<- *prometheus.Desc) {
	to <- s.held
	for _, row := range s.rows {
		to <- row.desc
	}
}

// Collect implements prometheus.Collector.
func (s *triggerSeries) Collect(to chan<- prometheus.Metric) {
	now := s.last.now()
	for _, trigger := range s.last.shown(now) {
		labels := []string{trigger.namespace, trigger.scaledObject, trigger.subject}
		if trigger.held {
			to <- prometheus.MustNewConstMetric(s.held, prometheus.GaugeValue, 1, labels...)
		}
		reading, err := s.signals.Read(trigger.of, now)
		if err != nil {
			continue // unknown has no sample
		}
		for _, row := range s.rows {
			if value, err := row.value(reading).Value(); err == nil {
				to <- prometheus.MustNewConstMetric(row.desc, prometheus.GaugeValue, value, labels...)
			}
		}
	}
}

// shownTrigger is one subject of a ScaledObject. Triggers that differ only in strategy or threshold are one.
type shownTrigger struct {
	namespace, scaledObject, subject string
	of                               Subject
	held                             bool
}

func (a shownTrigger) compare(b shownTrigger) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.scaledObject, b.scaledObject),
		cmp.Compare(a.subject, b.subject))
}

// shown are the recently requested triggers without a policy, sorted, each subject of a ScaledObject once.
func (l *lastSamples) shown(now time.Time) []shownTrigger {
	var all []shownTrigger
	for _, last := range l.samples.Values() {
		trigger := last.trigger.Value()
		if trigger.Subject.Policy != "" || last.stateAt(now) == unseen {
			continue
		}
		all = append(all, shownTrigger{
			trigger.Object.Namespace, trigger.Object.Name, trigger.Subject.describe(), trigger.Subject,
			last.state == held,
		})
	}
	slices.SortStableFunc(all, func(a, b shownTrigger) int {
		if order := a.compare(b); order != 0 || a.held == b.held {
			return order
		}
		if a.held { // a held one represents all of its subject
			return -1
		}
		return 1
	})
	all = slices.CompactFunc(all, func(a, b shownTrigger) bool { return a.compare(b) == 0 })
	return all[:min(len(all), maxShown)]
}
