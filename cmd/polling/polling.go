// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package polling

import (
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/instance"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

const (
	// maxWorkloads is how many workloads' instances are asked at once; each has its own requests, bounded over all of
	// them.
	maxWorkloads = 16
	// bulkInterval is how often a broker prepares what it says in bulk.
	bulkInterval = time.Minute
	// quietIntervals is how many poll intervals a topic without work is left alone while bulk answers confirm that.
	quietIntervals = 12
)

// Config is what New needs; all fields but Pods are required.
type Config struct {
	Options Options
	Store   *backlog.Store
	// Credentials knows what clusters name by Access.
	Credentials auth.Source
	// Pods knows where instances run; nil where they are not asked.
	Pods instance.Addresses
	// Updated is called when a topic has changed; it must not block.
	Updated    func(backlog.Topic)
	Registerer prometheus.Registerer
}

// Polling is the readers of Pulsar and the loop that drives them.
type Polling struct {
	Poller *poll.Poller
	Source *pulsar.Source
	// Worker asks function workers, and changes what they run.
	Worker *pulsar.Worker
}

// New makes the readers of Pulsar and the loop that drives them; nothing is asked before the loop runs.
func New(config Config) (*Polling, error) {
	o := config.Options
	source, err := pulsar.New(pulsar.Config{
		Registerer: config.Registerer, AllowedHosts: o.PulsarHosts(), RequestTimeout: o.PulsarTimeout,
		MaxConnsPerHost: o.MaxRequestsPerCluster, MaxRequestsPerSecondPerHost: o.MaxRequestsPerSecond,
		TokenFile: o.PulsarTokenFile, CAFile: o.PulsarCAFile,
		AuthPlugin: o.PulsarAuthPlugin, AuthParamsFile: o.PulsarAuthParamsFile, AllowedIssuers: o.AllowedOAuth2Issuers,
		Credentials: config.Credentials,
	})
	if err != nil {
		return nil, err
	}
	// A fetch is up to three requests one after the other: partitions, stats and entry counters. An age that hangs
	// costs one more; should the time not be enough then, the next fetch leaves it out.
	const requests = 3
	polling := poll.Config{
		Store: config.Store, Source: source, Lister: source,
		Interval: o.PollInterval, Timeout: min(requests*o.PulsarTimeout, time.Minute),
		PerCluster: o.MaxRequestsPerCluster, Workloads: maxWorkloads, BulkInterval: bulkInterval,
		QuietInterval: quietIntervals * o.PollInterval,
		Jitter:        rand.Float64, Updated: config.Updated,
	}
	worker := source.Worker()
	if config.Pods != nil {
		pods, err := instance.New(instance.Config{Registerer: config.Registerer, Addresses: config.Pods})
		if err != nil {
			return nil, err
		}
		// A worker asks instances one after the other, so it is asked as rarely as its answers stay in force.
		polling.Instances = instances{pods: pods, worker: worker.Spaced(o.StaleAfter / 2)}
	}
	if o.BulkSource == bulkBrokerStats {
		polling.Bulk, err = source.BrokerStats(pulsar.BrokerStatsConfig{Wanted: config.Store.Tracks})
		if err != nil {
			return nil, err
		}
	}
	poller, err := poll.New(polling)
	return &Polling{Poller: poller, Source: source, Worker: worker}, err
}
