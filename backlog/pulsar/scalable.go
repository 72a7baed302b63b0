// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	callScalable      callName = "scalable "
	callScalableStats callName = "scalable-stats stats"
	callSegment       callName = "segment-backlog backlog"
)

const (
	segmentDomain = "segment://"
	// maxSegments bounds the requests for one topic: the broker splits up to 64, and sealed ones are drained soon.
	maxSegments = 256
)

// errUncounted is why a sample of a scalable topic has no counters.
func errUncounted() error {
	return backlog.Errorf(backlog.ErrNotReported, "of a topic:// topic Pulsar reports the backlog only, in entries; "+
		"versions after 5.0.0-M1 report its consumers too, and none counts messages")
}

// fetchScalable reads a scalable topic as one partition: segments come and go with the load, and Pulsar has no counters
// of theirs to follow.
func (s *Source) fetchScalable(ctx context.Context, a address, request backlog.Request) (backlog.TopicSample, error) {
	at := s.now()
	var stats scalableStats
	age, err := s.client.getAged(ctx, a, callScalableStats, "", func(r io.Reader) (err error) {
		stats, err = decodeScalableStats(r)
		return err
	})
	if errors.Is(err, errServerError) { // 5.0.0-M1 also answers 500 for a missing topic
		absent := s.client.get(ctx, a, callScalable, "", func(r io.Reader) error { return newScanner(r).skip() })
		if errors.Is(absent, backlog.ErrTopicNotFound) {
			return backlog.TopicSample{}, absent
		}
	}
	if err != nil {
		return backlog.TopicSample{}, err
	}
	sample := backlog.TopicSample{At: at.Add(-age), Subscriptions: request.Subscriptions, Uncounted: errUncounted()}
	partition := backlog.PartitionSample{Index: backlog.NotPartitioned}
	if stats.reportsBacklog() {
		sample.Detail = request.Detail & backlog.Consumers
		partition.Subscriptions = stats.samples(request)
		sample.Incomplete = segmentsMissing(len(stats.segments)-stats.owned, len(stats.segments))
	} else {
		partition.Subscriptions, sample.Incomplete, err = s.segmentBacklogs(ctx, a, stats, request)
	}
	sample.Partitions = []backlog.PartitionSample{partition}
	return sample, err
}

func segmentsMissing(missing, all int) error {
	if missing == 0 {
		return nil
	}
	return backlog.Errorf(backlog.ErrPartial, "%d of %d segments did not answer", missing, all)
}

// samples are the requested subscriptions. Of a STREAM consumer the broker knows the session, and a QUEUE consumer is
// attached to every segment.
func (s scalableStats) samples(request backlog.Request) (samples []backlog.SubscriptionSample) {
	for _, name := range slices.Sorted(maps.Keys(s.subscriptions)) {
		one := s.subscriptions[name]
		if !request.Wants(name) {
			continue
		}
		sample := backlog.SubscriptionSample{Name: name, Type: backlog.Stream}
		if one.Backlog != nil {
			sample.BacklogEntries = *one.Backlog
		}
		consumers := one.connected()
		if one.Type == "QUEUE" {
			sample.Type, consumers = backlog.Shared, one.attached()
		}
		if request.Detail.Has(backlog.Consumers) {
			sample.MoreConsumers = int(min(consumers, maxConsumers))
		}
		samples = append(samples, sample)
	}
	return samples
}

// segmentBacklogs requests the backlog of each segment, for 5.0.0-M1. Its consumers are unknown: it counts those of
// STREAM only, also after they have left.
func (s *Source) segmentBacklogs(ctx context.Context, a address, stats scalableStats, request backlog.Request,
) (samples []backlog.SubscriptionSample, incomplete, err error) {
	names := request.Subscriptions
	if names == nil {
		names = slices.Sorted(maps.Keys(stats.subscriptions))
	}
	for _, name := range names {
		sample := backlog.SubscriptionSample{Name: name, Type: backlog.NoType}
		if stats.subscriptions[name].connected() > 0 {
			sample.Type = backlog.Stream
		}
		found, missing := 0, 0
		for _, segment := range stats.segments {
			entries, err := s.segmentBacklog(ctx, a, segment, name)
			switch {
			case err == nil:
				found++
				sample.BacklogEntries += entries
			case errors.Is(err, backlog.ErrPartial):
				missing++
			case !errors.Is(err, backlog.ErrSubscriptionNotFound):
				return nil, nil, err
			}
		}
		if found > 0 {
			samples = append(samples, sample)
		}
		incomplete = cmp.Or(incomplete, segmentsMissing(missing, len(stats.segments)))
	}
	return samples, incomplete, nil
}

// segmentBacklog is the backlog of a subscription on one segment, in entries. A segment that no client uses is not
// loaded, and one that was drained is gone.
func (s *Source) segmentBacklog(ctx context.Context, a address, segment, subscription string) (int64, error) {
	topic := strings.TrimPrefix(a.subject, backlog.ScalableDomain)
	descriptor, found := strings.CutPrefix(segment, segmentDomain+topic+"/")
	if !found || isStep(descriptor) || strings.Contains(descriptor, "/") {
		return 0, backlog.Errorf(backlog.ErrPartial, "segment %s is not one of %s", backlog.Quote(segment), a.subject)
	}
	a.path = strings.Replace(a.path, "/scalable/", "/segments/", 1) + "/" + url.PathEscape(descriptor)
	a.owner = a.path
	a.path += "/subscription/" + url.QueryEscape(subscription)
	a.subject, a.grant = segment, "superuser (on Pulsar 5.0.0-M1; later versions need consume on the namespace only)"
	a.absent, a.remedy = backlog.ErrPartial, "no client has it loaded"
	var entries int64
	err := s.client.get(ctx, a, callSegment, "", func(r io.Reader) error {
		var answer *int64
		err := decodeJSON(r, &answer)
		if err == nil {
			entries, err = counter(answer, "the backlog")
		}
		return err
	})
	return entries, err
}

// scalableStats are the statistics of a scalable topic.
//
// Source: org.apache.pulsar.common.policies.data.ScalableTopicStats, of 5.0.0-M1 and as of apache/pulsar#26639.
type scalableStats struct {
	// segments are by name, and owned those that answered the broker; 5.0.0-M1 asks none.
	segments      []string
	owned         int
	subscriptions map[string]scalableSubscription
}

type scalableSegment struct {
	Name        string `json:"name"`
	OwnerBroker string `json:"ownerBroker"`
}

type scalableSubscription struct {
	Type          string `json:"type"`
	Backlog       *int64 `json:"msgBacklog"`
	ConsumerCount int64  `json:"consumerCount"` // of 5.0.0-M1
	Segments      map[string]struct {
		ConsumerCount int64 `json:"consumerCount"`
	} `json:"segments"`
	Consumers []struct {
		Connected bool `json:"connected"`
	} `json:"consumers"`
}

// connected is the number of consumers with a session.
func (s scalableSubscription) connected() int64 {
	var connected int64
	for _, consumer := range s.Consumers {
		if consumer.Connected {
			connected++
		}
	}
	return sum(connected, s.ConsumerCount)
}

// attached is the largest number of consumers on one segment.
func (s scalableSubscription) attached() (most int64) {
	for _, segment := range s.Segments {
		most = max(most, segment.ConsumerCount)
	}
	return most
}

// reportsBacklog reports whether the version has backlogs: from apache/pulsar#26639 on, also for a topic without a
// subscription.
func (s scalableStats) reportsBacklog() bool {
	for _, one := range s.subscriptions {
		if one.Backlog != nil {
			return true
		}
	}
	return s.owned > 0
}

// decodeScalableStats reads the answer of /admin/v2/scalable/{topic}/stats of any version.
func decodeScalableStats(r io.Reader) (scalableStats, error) {
	var answer struct {
		Segments map[string]scalableSegment `json:"segments"` // of 5.0.0-M1
		Layout   struct {
			Segments map[string]scalableSegment `json:"segments"`
		} `json:"layout"`
		Subscriptions map[string]scalableSubscription `json:"subscriptions"`
	}
	if err := decodeJSON(r, &answer); err != nil {
		return scalableStats{}, err
	}
	s := scalableStats{subscriptions: answer.Subscriptions}
	for _, all := range []map[string]scalableSegment{answer.Segments, answer.Layout.Segments} {
		for _, id := range slices.Sorted(maps.Keys(all)) {
			s.segments = append(s.segments, all[id].Name)
			if all[id].OwnerBroker != "" {
				s.owned++
			}
		}
	}
	return s, s.validate()
}

// validate also rejects an answer that lacks some of the backlogs: they would count as 0.
func (s scalableStats) validate() error {
	switch {
	case len(s.segments) == 0:
		return errors.New("segments is missing")
	case len(s.segments) > maxSegments:
		return fmt.Errorf("more than %d segments", maxSegments)
	case !s.reportsBacklog():
		return nil
	}
	for name, one := range s.subscriptions {
		if _, err := counter(one.Backlog, "msgBacklog"); err != nil {
			return fmt.Errorf("subscription %s: %w", name, err)
		}
	}
	return nil
}
