// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
)

// ours is the poller of the adapter with its default limits: 3 s for a request and 16 concurrent requests to a cluster;
// flagsThatDiffer returns the raised limits per host.
type ours struct {
	store         *backlog.Store
	poller        *poll.Poller
	subscriptions []backlog.Subscription
}

func newOurs(s setting, admin string) (*ours, error) {
	u, err := url.Parse(admin)
	if err != nil {
		return nil, fmt.Errorf("parsing the broker's URL: %w", err)
	}
	o := &ours{}
	if o.store, err = backlog.NewStore(s.Interval, 6*s.Interval); err != nil {
		return nil, err
	}
	source, err := pulsar.New(pulsar.Config{
		Registerer: prometheus.NewRegistry(), AllowedHosts: []string{u.Host},
		MaxRequestsPerSecondPerHost: s.requestsPerHost(),
	})
	if err != nil {
		return nil, err
	}
	o.poller, err = poll.New(poll.Config{
		Store: o.store, Source: source, Interval: s.Interval, Timeout: 9 * time.Second, PerCluster: 16,
		Jitter: rand.Float64, Updated: func(backlog.Topic) {},
	})
	if err != nil {
		return nil, err
	}
	for i := range s.Topics {
		one := backlog.NewSubscription(backlog.Cluster{AdminURL: admin}, subscription, s.topic(i))
		o.subscriptions = append(o.subscriptions, one)
		o.store.Track(s.topic(i), one)
	}
	return o, nil
}

// manyRequests is the maximum of the adapter's --max-requests-per-second.
const manyRequests = 100_000

// requestsPerHost is the adapter's default if that is at least twice what polling needs. Otherwise the one fake broker
// represents all brokers of such a cluster.
func (s setting) requestsPerHost() int {
	if float64(2*s.Topics)/s.Interval.Seconds() <= pulsar.DefaultMaxRequestsPerSecondPerHost {
		return pulsar.DefaultMaxRequestsPerSecondPerHost
	}
	return manyRequests
}

// flagsThatDiffer are a contender's adapter flags that differ from the defaults; "" if none do.
func (s setting) flagsThatDiffer(contender string) string {
	if limit := s.requestsPerHost(); contender == nameOurs && limit != pulsar.DefaultMaxRequestsPerSecondPerHost {
		return fmt.Sprintf("--max-requests-per-second=%d", limit)
	}
	return ""
}

func (o *ours) run(ctx context.Context) error { return o.poller.Run(ctx) }

// measuredAt implements contender.
func (o *ours) measuredAt(i int, now time.Time) (time.Time, bool) {
	reading, err := o.store.Read(o.subscriptions[i], now)
	return reading.At, err == nil
}
