// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// fetches counts the polled topics of each cluster, and measures the delay of their fetches. A cluster without topics
// has no series.
type fetches struct {
	store  *backlog.Store
	topics *prometheus.Desc
	// mu makes lookup and removal of a cluster's histogram atomic.
	mu       sync.Mutex
	lateness *prometheus.HistogramVec
	clusters map[string]bool
}

func newFetches(registerer prometheus.Registerer, store *backlog.Store) *fetches {
	f := &fetches{
		store: store,
		topics: prometheus.NewDesc("pulsar_autoscaler_topics", "Polled topics, by the admin URL of their cluster.",
			[]string{"cluster"}, nil),
		lateness: promauto.With(registerer).NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_poll_lateness_seconds",
			Help:    "Delay of the fetch of a topic after its due time, by the admin URL of its cluster.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"cluster"}),
		clusters: map[string]bool{},
	}
	registerer.MustRegister(f)
	return f
}

func (f *fetches) started(j backlog.Job, late time.Duration) {
	if j.Kind != backlog.TopicKind {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters[j.Cluster.AdminURL] = true
	f.lateness.WithLabelValues(j.Cluster.AdminURL).Observe(late.Seconds())
}

// Describe implements prometheus.Collector.
func (f *fetches) Describe(to chan<- *prometheus.Desc) { to <- f.topics }

// Collect implements prometheus.Collector.
func (f *fetches) Collect(to chan<- prometheus.Metric) {
	topics := map[string]int{}
	for cluster, count := range f.store.CountTopics() {
		topics[cluster.AdminURL] += count
	}
	for url, count := range topics {
		to <- prometheus.MustNewConstMetric(f.topics, prometheus.GaugeValue, float64(count), url)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for url := range f.clusters {
		if topics[url] == 0 {
			delete(f.clusters, url)
			f.lateness.DeleteLabelValues(url)
		}
	}
}

// countImplausible counts implausible answers, each of which is requested again.
func countImplausible(registerer prometheus.Registerer) func(result string) {
	counters := map[string]prometheus.Counter{}
	for _, result := range []string{poll.Resolved, poll.Unresolved, poll.Failed} {
		counters[result] = promauto.With(registerer).NewCounter(prometheus.CounterOpts{
			Name:        "pulsar_autoscaler_implausible_answers_total",
			Help:        "Answers about a topic that contradicted what is known, by the result of requesting them again.",
			ConstLabels: prometheus.Labels{"result": result},
		})
	}
	return func(result string) { counters[result].Inc() }
}
