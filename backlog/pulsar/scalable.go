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
	a.path = strings.Replace(a.path, "/scalable/", "/segments/", 1) + "/" + url.PathEscape(descriptor)
	a.owner = a.path
	a.path += "/subscription/" + url.QueryEscape(subscription)
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

// scalableStats are the statistics of a scalable topic.
//
// Source: org.apache.pulsar.common.policies.data.ScalableTopicStats, of 5.0.0-M1 and as of apache/pulsar#26639.
type scalableStats struct {
	// segments are by name, and owned those that answered the broker; 5.0.0-M1 asks none.
	segments      []string
	owned         int
	subscriptions map[string]scalableSubscription
}

type scalableSubscription struct {
	kind    string
	backlog number
	// connected is the number of consumers with a session, and attached the largest number on one segment.
	connected, attached int64
}

// reportsBacklog reports whether the version has backlogs: from apache/pulsar#26639 on, also for a topic without a
// subscription.
func (s scalableStats) reportsBacklog() bool {
	for _, one := range s.subscriptions {
		if one.backlog.present {
			return true
		}
	}
	return s.owned > 0
}

// decodeScalableStats reads the answer of /admin/v2/scalable/{topic}/stats of any version.
func decodeScalableStats(r io.Reader) (scalableStats, error) {
	d := newStatsDecoder(r, backlog.Request{})
	s := scalableStats{subscriptions: map[string]scalableSubscription{}}
	err := d.object(func(key []byte) error {
		switch string(key) {
		case "segments": // of 5.0.0-M1
			return s.decodeSegments(d)
		case "layout":
			return d.object(func(key []byte) error {
				if string(key) != "segments" {
					return d.skip()
				}
				return s.decodeSegments(d)
			})
		case "subscriptions":
			return d.object(func(key []byte) error {
				name := validText(key)
				if err := d.answer.keep(subscriptionCost + len(name)); err != nil {
					return err
				}
				one, err := decodeScalableSubscription(d)
				s.subscriptions[name] = one
				return err
			})
		default:
			return d.skip()
		}
	})
	if err = d.finish(err); err != nil {
		return s, err
	}
	return s, s.validate()
}

// validate also rejects an answer that lacks some of the backlogs: they would count as 0.
func (s scalableStats) validate() error {
	if len(s.segments) == 0 {
		return errors.New("segments is missing")
	}
	for name, one := range s.subscriptions {
		if _, err := one.backlog.counter("msgBacklog"); err != nil && s.reportsBacklog() {
			return fmt.Errorf("subscription %s: %w", name, err)
		}
	}
	return nil
}

func (s *scalableStats) decodeSegments(d *statsDecoder) error {
	return d.object(func([]byte) error {
		if len(s.segments) >= maxSegments {
			return fmt.Errorf("more than %d segments", maxSegments)
		}
		var name, owner string
		err := d.object(func(key []byte) (err error) {
			switch string(key) {
			case "name":
				name, err = d.sharedText("name")
			case "ownerBroker":
				owner, err = d.sharedText("ownerBroker")
			default:
				err = d.skip()
			}
			return err
		})
		if owner != "" {
			s.owned++
		}
		s.segments = append(s.segments, name)
		return err
	})
}

func decodeScalableSubscription(d *statsDecoder) (s scalableSubscription, err error) {
	err = d.object(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			s.kind, err = d.sharedText("type")
		case "msgBacklog":
			s.backlog, err = d.integer("msgBacklog")
		case "consumerCount": // of 5.0.0-M1
			var count number
			count, err = d.integer("consumerCount")
			s.connected = count.value
		case "segments":
			err = d.object(func([]byte) error {
				return eachField(d, "consumerCount", func() error {
					count, err := d.integer("consumerCount")
					s.attached = max(s.attached, count.value)
					return err
				})
			})
		case "consumers":
			err = d.array(func() error {
				return eachField(d, "connected", func() error {
					connected, err := d.boolean("connected")
					if connected {
						s.connected++
					}
					return err
				})
			})
		default:
			err = d.skip()
		}
		return err
	})
	return s, err
}

// eachField reads an object of which one field matters.
func eachField(d *statsDecoder, name string, read func() error) error {
	return d.object(func(key []byte) error {
		if string(key) != name {
			return d.skip()
		}
		return read()
	})
}
