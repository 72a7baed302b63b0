// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// bulkAge is the maximum age of an answer: a broker prepares it once a minute (statsUpdateFrequencyInSecs).
	bulkAge = time.Minute
	// brokerStatsTimeout is for about 25 MB from a broker with 10,000 topics.
	brokerStatsTimeout = 30 * time.Second
	// bulkBrokers are read concurrently.
	bulkBrokers = 4
)

// BrokerStatsConfig configures a BrokerStats.
type BrokerStatsConfig struct {
	// Wanted reports which topics to keep, by names without partition suffixes; required. It is called concurrently, once
	// or twice for each partition of the cluster.
	Wanted func(backlog.Topic) bool
}

// BrokerStats implements poll.BulkSource with the answer that each broker prepares once a minute for all its loaded
// topics. It costs the broker next to nothing, is up to a minute old, and needs a superuser.
type BrokerStats struct {
	client *client
	config BrokerStatsConfig
	now    func() time.Time
}

// BrokerStats returns a bulk reader that uses the Source's connections.
func (s *Source) BrokerStats(config BrokerStatsConfig) (*BrokerStats, error) {
	if config.Wanted == nil {
		return nil, errors.New("wanted is missing: it must know the topics to keep")
	}
	return &BrokerStats{client: s.client, config: config, now: s.now}, nil
}

// FetchBulk reads all brokers of the cluster. The topics of brokers that do not answer are missing. It returns an error
// only if no broker answers, or the cluster does not list its brokers.
func (b *BrokerStats) FetchBulk(ctx context.Context, cluster backlog.Cluster) (backlog.BulkSample, error) {
	brokers, err := b.brokers(ctx, cluster)
	if err != nil {
		return backlog.BulkSample{}, err
	}
	at := b.now().Add(-bulkAge)
	answers := make([]map[string]backlog.BulkTopic, len(brokers))
	problems := make([]error, len(brokers))
	var group errgroup.Group
	group.SetLimit(bulkBrokers)
	for i, broker := range brokers {
		group.Go(func() error {
			answers[i], problems[i] = b.read(ctx, cluster, broker)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return backlog.BulkSample{}, err
	}
	if i := slices.IndexFunc(problems, func(err error) bool { return err != nil }); i >= 0 &&
		!slices.Contains(problems, nil) {
		return backlog.BulkSample{}, problems[i]
	}
	return backlog.BulkSample{At: at, Topics: merge(answers)}, nil
}

// merge keeps the answer with the larger backlog for a topic that two brokers report, since it moved within the minute:
// a backlog that is too large costs one fetch of the topic.
func merge(answers []map[string]backlog.BulkTopic) map[string]backlog.BulkTopic {
	merged := map[string]backlog.BulkTopic{}
	for _, topics := range answers {
		for name, topic := range topics {
			if other, twice := merged[name]; twice && entries(other) >= entries(topic) {
				continue
			}
			merged[name] = topic
		}
	}
	return merged
}

func entries(topic backlog.BulkTopic) (sum int64) {
	for _, subscription := range topic.Subscriptions {
		sum += subscription.BacklogEntries
	}
	return sum
}

// brokers returns the admin URLs of the cluster's brokers. The answer has no scheme, so they get that of the admin URL.
// Their hosts must be allowed like any other.
func (b *BrokerStats) brokers(ctx context.Context, cluster backlog.Cluster) (brokers []*url.URL, err error) {
	base, err := parseBase(cluster.AdminURL)
	if err != nil {
		return nil, err
	}
	a := superuserAddress(cluster, base, "/admin/v2/brokers", "the list of brokers")
	err = b.client.get(ctx, a, callBrokers, "", func(r io.Reader) (err error) {
		brokers, err = decodeBrokers(r, base.Scheme)
		return err
	})
	return brokers, err
}

// read reads one broker.
func (b *BrokerStats) read(ctx context.Context, cluster backlog.Cluster,
	broker *url.URL,
) (topics map[string]backlog.BulkTopic, err error) {
	a := superuserAddress(cluster, broker, "/admin/v2/broker-stats", "all topics of "+broker.Host)
	a.timeout = brokerStatsTimeout
	wanted := func(name string) bool {
		base := withoutPartition(name)
		return b.config.Wanted(backlog.Topic{Cluster: cluster, Name: base}) ||
			base != name && b.config.Wanted(backlog.Topic{Cluster: cluster, Name: name}) // a partition may be an input by itself
	}
	err = b.client.get(ctx, a, callBrokerStats, "", func(r io.Reader) (err error) {
		topics, err = decodeBrokerStats(r, wanted)
		return err
	})
	return topics, err
}

func superuserAddress(cluster backlog.Cluster, base *url.URL, path, subject string) address {
	return address{
		cluster: cluster, base: base, path: path, subject: subject,
		grant:  "superuser rights (superUserRoles of the brokers)",
		absent: backlog.ErrUnsupported, remedy: "read topics one by one",
	}
}
