// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/instance"
	bulkprometheus "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/prometheus"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
)

const (
	// maxWorkloads is how many workloads' instances are asked at once; each has its own requests, bounded over all of them.
	maxWorkloads = 16
	// bulkInterval is how often a broker prepares what it says in bulk.
	bulkInterval = time.Minute
	// quietIntervals is how many poll intervals a topic without work is left alone while bulk answers confirm that.
	quietIntervals = 12
)

// addPolling makes the readers of Pulsar and the loop that drives them.
func (a *adapter) addPolling(o *Options, store *backlog.Store, parts *controllers.Controllers, registry prometheus.Registerer) error {
	var err error
	a.source, err = pulsar.New(pulsar.Config{
		Registerer: registry, AllowedHosts: o.PulsarHosts(), RequestTimeout: o.PulsarTimeout,
		MaxConnsPerHost: o.MaxRequestsPerCluster, MaxRequestsPerSecondPerHost: o.MaxRequestsPerSecond, TokenFile: o.PulsarTokenFile, CAFile: o.PulsarCAFile,
		AuthPlugin: o.PulsarAuthPlugin, AuthParamsFile: o.PulsarAuthParamsFile, AllowedIssuers: o.AllowedOAuth2Issuers,
		Credentials: parts.Credentials,
	})
	if err != nil {
		return err
	}
	// A fetch is up to three requests one after the other: partitions, stats and entry counters. An age that hangs
	// costs one more; should the time not be enough then, the next fetch leaves it out.
	const requests = 3
	config := backlog.PollerConfig{
		Store: store, Source: a.source, Lister: a.source,
		Interval: o.PollInterval, Timeout: min(requests*o.PulsarTimeout, time.Minute),
		PerCluster: o.MaxRequestsPerCluster, Workloads: maxWorkloads, BulkInterval: bulkInterval, QuietInterval: quietIntervals * o.PollInterval,
		Jitter: rand.Float64, Updated: parts.Poked,
	}
	a.worker.Worker = a.source.Worker()
	if parts.Pods != nil {
		pods, err := instance.New(instance.Config{Registerer: registry, Addresses: parts.Pods})
		if err != nil {
			return err
		}
		// A worker asks instances one after the other, so it is asked as rarely as its answers stay in force.
		config.Instances = instances{pods: pods, worker: a.worker.Spaced(o.StaleAfter / 2)}
	}
	if config.Bulk, err = a.bulk(o, store, registry); err != nil {
		return err
	}
	a.poller, err = backlog.NewPoller(config)
	return err
}

// bulk is the source of rough answers about many topics; nil for none.
func (a *adapter) bulk(o *Options, store *backlog.Store, registry prometheus.Registerer) (backlog.BulkSource, error) {
	switch o.BulkSource {
	case bulkBrokerStats:
		return a.source.BrokerStats(pulsar.BrokerStatsConfig{Wanted: store.Tracks})
	case bulkPrometheus:
		selectors, err := o.PrometheusSelectors()
		if err != nil {
			return nil, err
		}
		return bulkprometheus.New(bulkprometheus.Config{
			Registerer: registry, URL: o.PrometheusURL, Selectors: selectors, TokenFile: o.PrometheusTokenFile, CAFile: o.PrometheusCAFile,
			Wanted: store.Tracks,
		})
	default:
		return nil, nil //nolint:nilnil // none is a choice
	}
}
