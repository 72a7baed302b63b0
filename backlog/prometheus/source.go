// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// The series, as a broker names them.
//
// Source: org.apache.pulsar.broker.stats.prometheus.TopicStats.
const (
	publishedSeries = "pulsar_in_messages_total"
	backlogSeries   = "pulsar_subscription_back_log"
	consumersSeries = "pulsar_subscription_consumers_count"
)

// Source implements backlog.BulkSource. It may be used by several goroutines.
type Source struct {
	config    Config
	host      string
	api       apiv1.API
	metrics   *metrics
	transport *http.Transport
	now       func() time.Time

	// mu guards unselected.
	mu sync.Mutex
	// unselected are the clusters that were asked for and have no selector, by admin URL, sorted.
	unselected []string
}

var _ backlog.BulkSource = (*Source)(nil)

// Close closes connections that are not in use.
func (s *Source) Close() { s.transport.CloseIdleConnections() }

// FetchBulk reads the topics of the cluster that Prometheus has scraped lately. Errors wrap a reason of package
// backlog, see the table in errors.go.
func (s *Source) FetchBulk(ctx context.Context, cluster backlog.Cluster) (backlog.BulkSample, error) {
	at := s.now()
	selector, err := s.selector(cluster)
	if err != nil {
		return backlog.BulkSample{}, err
	}
	oldest, err := s.query(ctx, "min(timestamp("+publishedSeries+selector+"))", at)
	if err != nil {
		return backlog.BulkSample{}, err
	}
	if len(oldest) != 1 {
		return backlog.BulkSample{},
			backlog.Because(backlog.ErrNoData, "Prometheus at %s has no %s of topics: does it scrape the brokers, "+
				"and have they exposeTopicLevelMetricsInPrometheus=true?", s.host, publishedSeries)
	}
	scraped, ok := instant(float64(oldest[0].Value))
	if !ok {
		return backlog.BulkSample{},
			backlog.Because(backlog.ErrProtocol, "Prometheus at %s gives %v for a time", s.host, oldest[0].Value)
	}
	found := newFindings(cluster, s.config.Wanted)
	for _, series := range []string{publishedSeries, backlogSeries, consumersSeries} {
		vector, err := s.query(ctx, series+selector, at)
		if err != nil {
			return backlog.BulkSample{}, err
		}
		found.add(series, vector)
	}
	if names := found.clusters(); len(names) > 1 {
		return backlog.BulkSample{}, backlog.Because(backlog.ErrUnsupported,
			"Prometheus at %s has several Pulsar clusters (%s and %s among them): give the selector of each", s.host, names[0], names[1])
	}
	// Its clock may be ahead of ours. And ours may be set: an age is measured by the clock that nobody sets, as that of
	// all other answers is, or this one could look newer than all that are to come.
	age := max(0, at.Sub(scraped))
	return backlog.BulkSample{At: at.Add(-age), Topics: found.topics()}, nil
}

// selector of the cluster's series. Where none is given, all series are taken for one cluster's, so there may be one
// such cluster only: topics have the same names in a cluster and its standby, and there is nothing in the series that
// is found in an admin URL too.
func (s *Source) selector(cluster backlog.Cluster) (string, error) {
	if own := s.config.Selectors[cluster.AdminURL]; own != "" {
		return "{" + topicSelector + "," + own + "}", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// two are enough to doubt
	if at, known := slices.BinarySearch(s.unselected, cluster.AdminURL); !known && len(s.unselected) < 2 {
		s.unselected = slices.Insert(s.unselected, at, cluster.AdminURL)
	}
	if len(s.unselected) > 1 {
		return "", backlog.Because(backlog.ErrUnsupported,
			"it is not known which Pulsar cluster Prometheus at %s has: %s or %s; give the selector of each",
			s.host, s.unselected[0], s.unselected[1])
	}
	return "{" + topicSelector + "}", nil
}

// query returns the answer to an instant query.
func (s *Source) query(ctx context.Context, query string, at time.Time) (vector model.Vector, err error) {
	start := time.Now()
	defer func() { s.metrics.observe(time.Since(start), err) }()
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	ctx, status := withStatus(ctx)
	value, _, _, err := s.api.Query(ctx, query, at)
	if err != nil {
		return nil, queryFault(s.host, *status, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, backlog.Because(backlog.ErrProtocol, "Prometheus at %s answered with a %s instead of a vector", s.host,
			value.Type())
	}
	return vector, nil
}

// instant is the time of so many seconds since 1970.
func instant(seconds float64) (time.Time, bool) {
	const most = 1 << 40 // some 35,000 years: not overflowing is enough
	if math.IsNaN(seconds) || seconds < 0 || seconds > most {
		return time.Time{}, false
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), true
}
