// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/instance"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
)

// maxWorkloads is the number of workloads that are requested at once; requests to their instances are bounded
// separately.
const maxWorkloads = 16

// maxWatches is the number of partitions that brokers report messages of, each with some 10 KB.
const maxWatches = 2000

// Config configures New; all fields but Pods are required.
type Config struct {
	Options Options
	Store   *backlog.Store
	// Credentials are the credentials that clusters name by Access.
	Credentials auth.Source
	// Pods has the addresses of instances; nil without --instance-metrics.
	Pods *informer.Pods
	// Updated is called when a topic has changed; it must not block.
	Updated    func(backlog.Topic)
	Registerer prometheus.Registerer
}

// Parts are the clients of Pulsar and the poller.
type Parts struct {
	Poller *poll.Poller
	Source *pulsar.Source
	// Worker reads and changes what function workers run.
	Worker *pulsar.Worker
}

// LateWorker is for the controllers, which are created before the clients of Pulsar because these need their
// credentials. It is set before anything runs.
type LateWorker struct{ *pulsar.Worker }

// New wires the clients of Pulsar and the poller; it sends no request.
func New(config Config) (*Parts, error) {
	o := config.Options
	source, err := pulsar.New(pulsar.Config{
		Registerer: config.Registerer, AllowedHosts: o.PulsarHosts(), RequestTimeout: o.PulsarTimeout,
		MaxConnsPerHost: o.MaxRequestsPerCluster, MaxRequestsPerSecondPerHost: o.MaxRequestsPerSecond,
		Own: o.Own, AllowedIssuers: o.AllowedOAuth2Issuers, Credentials: config.Credentials,
		CAFileFailed: func(err error) {
			ctrl.Log.WithName("pulsar").Error(err, "reading a file failed, using its last valid content", "path", o.Own.CAFile)
		},
	})
	if err != nil {
		return nil, err
	}
	// A fetch is up to three requests in sequence: partitions, stats and entry counters. An age that hangs costs one more;
	// if that exceeds the timeout, the next fetch skips it.
	const requests = 3
	polling := poll.Config{
		Store: config.Store, Source: source, Lister: source,
		Interval: o.PollInterval, Timeout: min(requests*o.PulsarTimeout, time.Minute),
		PerCluster: o.MaxRequestsPerCluster, Workloads: maxWorkloads,
		Jitter: rand.Float64, Updated: config.Updated,
	}
	polling.Started = newFetches(config.Registerer, config.Store).started
	polling.Implausible = countImplausible(config.Registerer)
	if o.WakeByPush {
		polling.Watcher, polling.Watches = source, maxWatches
	}
	// A worker requests its instances in sequence, so it is requested only twice per StaleAfter.
	worker := source.Worker(o.StaleAfter / 2)
	if config.Pods != nil {
		pods := instance.New(config.Registerer, config.Pods)
		polling.Instances = instances{pods: pods, podsTimeout: polling.Timeout, worker: worker}
	}
	poller, err := poll.New(polling)
	if err != nil {
		return nil, err
	}
	return &Parts{Poller: poller, Source: source, Worker: worker}, nil
}

// instances requests each workload's instances in pods or from a function worker.
type instances struct {
	pods        *instance.Scraper
	worker      *pulsar.Worker
	podsTimeout time.Duration
}

// FetchInstances implements poll.InstanceSource.
func (i instances) FetchInstances(ctx context.Context, workload backlog.Workload) (backlog.InstancesSample, error) {
	switch of := workload.(type) {
	case function.Component:
		return i.worker.FetchInstances(ctx, of)
	case backlog.Object:
		ctx, cancel := context.WithTimeout(ctx, i.podsTimeout)
		defer cancel()
		return i.pods.FetchInstances(ctx, of)
	}
	return backlog.InstancesSample{}, backlog.Errorf(backlog.ErrUnsupported, "no instances are known of %s", workload)
}
