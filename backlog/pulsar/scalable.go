// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"context"
	"errors"
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
		sample := backlog.SubscriptionSample{Name: name, Type: backlog.Stream, BacklogEntries: one.backlog.value}
		consumers := one.connected
		if one.kind == "QUEUE" {
			sample.Type, consumers = backlog.Shared, one.attached
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
		if stats.subscriptions[name].connected > 0 {
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
	a.path = strings.Replace(a.path, "/scalable/", "/segments/", 1) + "/" + url.PathEscape(descriptor) +
		"/subscription/" + url.QueryEscape(subscription)
	a.subject, a.grant = segment, "superuser (on Pulsar 5.0.0-M1; later versions need consume on the namespace only)"
	a.absent, a.remedy = backlog.ErrPartial, "no client has it loaded"
	var entries int64
	err := s.client.get(ctx, a, callSegment, "", func(r io.Reader) error {
		d := newScanner(r)
		answer, err := d.integer("the backlog")
		if err = d.finish(err); err != nil {
			return err
		}
		entries, err = answer.counter("the backlog")
		return err
	})
	return entries, err
}
