// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/reader"
)

// Source implements poll.Source. It is safe for concurrent use.
type Source struct {
	client *client
	// counts has the number of partitions of topics.
	counts *backlog.Cache[backlog.Topic, int]
	// ages bounds the calls that request an age, which brokers read from their storage, by admin URL. While the storage
	// hangs, each such call holds a connection until its timeout. They may use half of the connections, and after some
	// failures one probe at a time, as for hosts. A fetch without its age has everything else.
	ages *hosts
	now  func() time.Time
	// readers are for Watch.
	readers *reader.Readers
}

// Close closes connections that are not in use.
func (s *Source) Close() {
	s.readers.Close()
	s.client.credentials.Close()
}

// Fetch reads the current state of a topic: one call, or up to three if it needs the number of partitions or entry
// counters, and mostPeeked more if those are younger than the backlog. An unavailable age adds one call, and a changed
// number of partitions up to three. Each has Config.RequestTimeout, and before that the time to resolve the
// credentials.
func (s *Source) Fetch(ctx context.Context, topic backlog.Topic, request backlog.Request) (backlog.TopicSample,
	error,
) {
	a, err := topicAddress(topic)
	if err != nil {
		return backlog.TopicSample{}, err
	}
	if a.scalable {
		return s.fetchScalable(ctx, a, request)
	}
	count, cached := s.counts.Get(topic, s.now())
	if !cached {
		if count, err = s.partitions(ctx, topic, a); err != nil {
			return backlog.TopicSample{}, err
		}
	}
	sample, err := s.stats(ctx, topic, a, count, request)
	if err != nil && cached && disagrees(err) {
		if count, err = s.partitions(ctx, topic, a); err != nil {
			return backlog.TopicSample{}, err
		}
		sample, err = s.stats(ctx, topic, a, count, request)
	}
	if err != nil {
		if disagrees(err) {
			s.counts.Delete(topic)
		}
		return backlog.TopicSample{}, err
	}
	if request.Detail.Has(backlog.Entries) && sample.Incomplete == nil {
		sample = s.peek(ctx, a, s.addEntries(ctx, a, sample))
	}
	return sample, nil
}

// AddEntries adds the entry counters, if they are available: without them the sample is still valid, and the metric of
// the call has the reason. It is one call.
func (s *Source) AddEntries(ctx context.Context, topic backlog.Topic, sample backlog.TopicSample) backlog.TopicSample {
	a, err := topicAddress(topic)
	if err != nil || a.scalable {
		return sample // Fetch has reported it, or there are none
	}
	return s.addEntries(ctx, a, sample)
}

// disagrees reports whether the answer may be wrong only because the number of partitions has changed since it was
// read.
func disagrees(err error) bool {
	return errors.Is(err, backlog.ErrTopicNotFound) || errors.Is(err, errFewerPartitions)
}

func (s *Source) partitions(ctx context.Context, topic backlog.Topic, a address) (count int, err error) {
	err = s.client.get(ctx, a, callPartitions, "", func(r io.Reader) (err error) {
		count, err = decodePartitions(r)
		return err
	})
	if err != nil {
		s.counts.Delete(topic)
		return 0, err
	}
	s.counts.Put(topic, count, s.now())
	return count, nil
}

// stats reads the topic, with the last known number of partitions. The age needs a read from the broker's storage, and
// if this fails or is slow, so does the whole call: then the rest is requested without it.
func (s *Source) stats(ctx context.Context, topic backlog.Topic, a address, count int,
	request backlog.Request,
) (backlog.TopicSample, error) {
	var sample backlog.TopicSample
	var done bool
	var err error
	if request.Detail.Has(backlog.Age) {
		sample, done, err = s.tryAge(ctx, a, count, request)
	}
	if !done {
		request.Detail &^= backlog.Age
		sample, err = s.statsOnce(ctx, a, count, request)
	}
	if err != nil {
		return backlog.TopicSample{}, err
	}
	if count > 0 && sample.Incomplete == nil {
		count = len(sample.Partitions) // some may have been added
	}
	s.counts.Put(topic, count, s.now()) // a good answer confirms the kind of topic
	return sample, nil
}

func (s *Source) statsOnce(ctx context.Context, a address, count int, request backlog.Request) (backlog.TopicSample,
	error,
) {
	call := statsCall(count > 0, request.Detail.Has(backlog.Age))
	a.large = request.Detail.Has(backlog.Consumers)
	at := s.now()
	var sample backlog.TopicSample
	age, err := s.client.getAged(ctx, a, call, statsQuery(count > 0, request.Detail), func(r io.Reader) (err error) {
		if count > 0 {
			sample, err = decodePartitionedStats(r, a.subject, count, request)
		} else {
			sample, err = decodeStats(r, request)
		}
		return err
	})
	if err != nil {
		return backlog.TopicSample{}, err
	}
	sample.At, sample.Detail = at.Add(-age), sample.Detail&^backlog.Entries
	return sample, nil
}

// statsQuery sets every parameter: the broker's defaults differ between parameters and releases.
func statsQuery(partitioned bool, detail backlog.Detail) string {
	query := "getPreciseBacklog=" + strconv.FormatBool(detail.Has(backlog.Precise)) +
		"&subscriptionBacklogSize=" + strconv.FormatBool(detail.Has(backlog.Bytes)) +
		"&getEarliestTimeInBacklog=" + strconv.FormatBool(detail.Has(backlog.Age)) +
		"&excludePublishers=true&excludeConsumers=" + strconv.FormatBool(!detail.Has(backlog.Consumers))
	if partitioned {
		query += "&perPartition=true"
	}
	return query
}

func (s *Source) addEntries(ctx context.Context, a address, sample backlog.TopicSample) backlog.TopicSample {
	call := callPartitionedInternalStats
	if sample.Partitions[0].Index == backlog.NotPartitioned {
		call = callInternalStats
	}
	var entries map[int]int64
	err := s.client.get(ctx, a, call, "", func(r io.Reader) (err error) {
		if call == callInternalStats {
			entries, err = decodeAddedEntries(r)
		} else {
			entries, err = decodePartitionedAddedEntries(r, a.subject)
		}
		return err
	})
	if err != nil {
		return sample
	}
	sample.Detail |= backlog.Entries
	for i := range sample.Partitions {
		if added, ok := entries[sample.Partitions[i].Index]; ok {
			sample.Partitions[i].AddedEntries = &added
		}
	}
	return sample
}

// mostPeeked bounds the entries that are read one by one, each with a request that reads it from storage.
const mostPeeked = 5

// peek reads some entries of the largest backlog from before the topic was loaded, which the counters do not include.
// It ends at the first failure: the sample is valid without it.
func (s *Source) peek(ctx context.Context, a address, sample backlog.TopicSample) backlog.TopicSample {
	older, partition, subscription := olderBacklog(sample)
	peeked := min(older, mostPeeked)
	for i := range peeked {
		position := 1 + i*(older-1)/max(1, peeked-1)
		messages := int64(1) // of an entry that is no batch
		e := &exchange{client: s.client, address: a.position(partition, subscription, position), call: callPosition}
		e.header = func(h http.Header) {
			if count, err := strconv.ParseInt(h.Get("X-Pulsar-Num-Batch-Message"), 10, 32); err == nil && count > 0 {
				messages = count
			}
		}
		if e.do(ctx) != nil {
			break
		}
		sample.PeekedEntries++
		sample.PeekedMessages += messages
	}
	return sample
}

// olderBacklog returns the subscription with the most entries from before the topic was loaded; 0 entries for none.
func olderBacklog(sample backlog.TopicSample) (entries int64, partition int, subscription string) {
	for _, p := range sample.Partitions {
		for _, one := range p.Subscriptions {
			if p.AddedEntries != nil && one.BacklogEntries-*p.AddedEntries > entries {
				entries, partition, subscription = one.BacklogEntries-*p.AddedEntries, p.Index, one.Name
			}
		}
	}
	return entries, partition, subscription
}

// tryAge reads the topic with the age, unless the storage behind the admin URL hangs.
func (s *Source) tryAge(
	ctx context.Context, a address, count int, request backlog.Request,
) (sample backlog.TopicSample, done bool, err error) {
	release := s.ages.acquire(ctx, a.base)
	if release == nil { // for any reason
		return backlog.TopicSample{}, false, nil
	}
	sample, err = s.statsOnce(ctx, a, count, request)
	switch {
	case err == nil:
		release(outcome{kind: answered})
	case ctx.Err() == nil && backlog.TimedOut(err):
		release(outcome{kind: failed})
	default:
		release(outcome{})
	}
	done = err == nil || ctx.Err() != nil || !withoutAge(err)
	return sample, done, err
}

// withoutAge reports whether the call may succeed without the age.
func withoutAge(err error) bool {
	return errors.Is(err, errServerError) || errors.Is(err, context.DeadlineExceeded)
}

// List implements poll.Lister. It sends two calls: one lists topics and partitions that were ever loaded, the other
// partitioned topics, loaded or not. It keeps no name, so that a large namespace costs time, not memory.
func (s *Source) List(ctx context.Context, namespace backlog.Namespace, add func(topic string)) error {
	a, err := namespaceAddress(namespace)
	if err != nil {
		return err
	}
	decode := func(r io.Reader) error { return decodeTopics(r, namespace.Name, add) }
	for _, call := range []callName{callTopics, callPartitionedTopics} {
		if err := s.client.get(ctx, a, call, "includeSystemTopic=false", decode); err != nil {
			return err
		}
	}
	return nil
}

// decodeTopics reads a list of names.
func decodeTopics(r io.Reader, namespace string, add func(topic string)) error {
	s, prefix := newScanner(r), []byte("persistent://"+namespace+"/")
	var last []byte // the partitions of a topic are often in a row
	err := s.array(func() error {
		text, err := s.textOrNull("a topic")
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(text, prefix) {
			return nil // non-persistent, or of an unknown domain
		}
		text = text[:baseLength(text)]
		if len(text) <= len(prefix) || bytes.Equal(text, last) {
			return nil
		}
		last = append(last[:0], text...)
		if name := validText(text); !backlog.SystemTopic(name) {
			add(name)
		}
		return nil
	})
	return s.finish(err)
}

// baseLength is the length of a name without the partition, as Pulsar's clients read it, even if there is no such
// partitioned topic: all of it if there is none. An index has up to 9 digits.
//
// Source: org.apache.pulsar.common.naming.TopicName.getPartitionedTopicName.
func baseLength(name []byte) int {
	base := bytes.LastIndex(name, []byte(backlog.PartitionSuffix))
	if base < 0 {
		return len(name)
	}
	digits := name[base+len(backlog.PartitionSuffix):]
	noDigit := func(r rune) bool { return r < '0' || r > '9' }
	if len(digits) == 0 || len(digits) > 9 || (len(digits) > 1 && digits[0] == '0') ||
		bytes.ContainsFunc(digits, noDigit) {
		return len(name)
	}
	return base
}
