// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// maxShared bounds the strings that all partitions share.
const maxShared = 10_000

// The needed fields of the answers; a number records whether it was present.
//
// Source: org.apache.pulsar.common.policies.data.stats, TopicStatsImpl, SubscriptionStatsImpl, ConsumerStatsImpl and
// PartitionedTopicStatsImpl; PersistentTopicInternalStats; PartitionedTopicMetadata.
type (
	subscriptionAnswer struct {
		backlog.SubscriptionSample

		backlog, out     number
		delayed, unacked number
		bytes, earliest  number
	}
	consumerAnswer struct {
		backlog.ConsumerSample

		component, instance, application string
	}
)

type statsDecoder struct {
	*scanner
	request backlog.Request
	// unanswered are details that some subscription lacks.
	unanswered backlog.Detail
	// consumersKept is the number of consumers in the sample.
	consumersKept int
	// others are those that were not requested, and unread is their number on the current partition.
	others backlog.OtherSubscriptions
	unread int
	// shared has strings that occur on several partitions.
	shared map[string]string
}

func newStatsDecoder(r io.Reader, request backlog.Request) *statsDecoder {
	return &statsDecoder{scanner: newScanner(r), request: request, shared: map[string]string{}}
}

// topicSample is the sample of a whole answer, with the requested details that it has.
func (d *statsDecoder) topicSample(partitions ...backlog.PartitionSample) backlog.TopicSample {
	return backlog.TopicSample{
		Detail: d.request.Detail &^ d.unanswered, Subscriptions: d.request.Subscriptions, Partitions: partitions,
		Others: d.others,
	}
}

// share returns the text as a string that is allocated once for the whole answer.
func (d *statsDecoder) share(text []byte) (string, error) {
	if len(text) == 0 {
		return "", nil
	}
	if known, ok := d.shared[string(text)]; ok {
		return known, nil
	}
	kept := validText(text)
	if len(d.shared) < maxShared {
		d.shared[kept] = kept
	}
	return kept, d.answer.keep(textCost + len(kept))
}

// topic reads one TopicStats. See the package comment for negative numbers.
func (d *statsDecoder) topic(index int) (backlog.PartitionSample, error) {
	var published, bytes number
	if err := d.answer.keep(partitionCost); err != nil {
		return backlog.PartitionSample{}, err
	}
	sample := backlog.PartitionSample{Index: index}
	d.unread = 0
	err := d.object(func(key []byte) (err error) {
		switch string(key) {
		case "msgInCounter":
			published, err = d.integer("msgInCounter")
			return err
		case "bytesInCounter":
			bytes, err = d.integer("bytesInCounter")
			return err
		case "subscriptions":
			sample.Subscriptions, err = d.subscriptions(sample.Subscriptions)
			return err
		default:
			return d.skip()
		}
	})
	if err != nil {
		return backlog.PartitionSample{}, err
	}
	if sample.PublishedMessages, err = published.counter("msgInCounter"); err != nil {
		return backlog.PartitionSample{}, err
	}
	sample.PublishedBytes = max(0, bytes.value) // only a sign of changed batches: nothing fails without it
	if sample.Subscriptions == nil {
		return backlog.PartitionSample{}, errors.New("subscriptions is missing")
	}
	byName := func(a, b backlog.SubscriptionSample) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(sample.Subscriptions, byName)
	for i := 1; i < len(sample.Subscriptions); i++ {
		if name := sample.Subscriptions[i].Name; name == sample.Subscriptions[i-1].Name {
			return backlog.PartitionSample{}, fmt.Errorf("subscription %s comes twice", name)
		}
	}
	return sample, nil
}

func (d *statsDecoder) subscriptions(all []backlog.SubscriptionSample) ([]backlog.SubscriptionSample, error) {
	if null, err := d.null("subscriptions"); null || err != nil {
		return all, err
	}
	if all == nil {
		all = []backlog.SubscriptionSample{}
	}
	err := d.object(func(key []byte) error {
		if !d.request.Wants(string(key)) {
			return d.skipOther(key)
		}
		if err := d.answer.keep(subscriptionCost); err != nil {
			return err
		}
		name, err := d.share(key)
		if err != nil {
			return err
		}
		sample, err := d.subscription(name)
		if err != nil {
			return fmt.Errorf("subscription %s: %w", name, err)
		}
		all = append(all, sample)
		return nil
	})
	return all, err
}

func (d *statsDecoder) subscription(name string) (backlog.SubscriptionSample, error) {
	s := subscriptionAnswer{SubscriptionSample: backlog.SubscriptionSample{Name: name}}
	err := d.object(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			var text string
			text, err = d.sharedText("type")
			s.Type = backlog.SubscriptionType(text)
		case "blockedSubscriptionOnUnackedMsgs":
			s.Blocked, err = d.boolean("blockedSubscriptionOnUnackedMsgs")
		case "msgInReplay":
			s.InReplayEntries, err = amount(d.integer("msgInReplay"))
		case "drainingHashesCount":
			s.DrainingHashes, err = amount(d.integer("drainingHashesCount"))
		case "consumers":
			err = d.consumers(&s.SubscriptionSample)
		default:
			if name := throttledBy(key); name != "" {
				var events number
				events, err = d.integer(name)
				s.ThrottledEvents = sum(s.ThrottledEvents, events.value)
				return err
			}
			field, name := s.number(key)
			if field == nil {
				return d.skip()
			}
			*field, err = d.integer(name)
		}
		return err
	})
	if err != nil {
		return backlog.SubscriptionSample{}, err
	}
	return d.sample(s)
}

// number finds the plain number of a key, and names it for errors.
func (s *subscriptionAnswer) number(key []byte) (field *number, name string) {
	switch string(key) {
	case "msgBacklog":
		return &s.backlog, "msgBacklog"
	case "msgOutCounter":
		return &s.out, "msgOutCounter"
	case "msgDelayed":
		return &s.delayed, "msgDelayed"
	case "unackedMessages":
		return &s.unacked, "unackedMessages"
	case "backlogSize":
		return &s.bytes, "backlogSize"
	case "earliestMsgPublishTimeInBacklog":
		return &s.earliest, "earliestMsgPublishTimeInBacklog"
	default:
		return nil, ""
	}
}

func (d *statsDecoder) sharedText(name string) (string, error) {
	words, err := d.textOrNull(name)
	if err != nil {
		return "", err
	}
	return d.share(words)
}

// consumers reads a list of consumers, or skips it if they were not requested: brokers before 3.2 send them in any
// case.
func (d *statsDecoder) consumers(s *backlog.SubscriptionSample) error {
	if !d.request.Detail.Has(backlog.Consumers) {
		return d.skip()
	}
	if null, err := d.null("consumers"); null || err != nil {
		return err
	}
	return d.array(func() error {
		if len(s.Consumers) >= maxConsumers || d.consumersKept >= maxAnswerConsumers {
			s.MoreConsumers++
			return d.skip()
		}
		d.consumersKept++
		if err := d.answer.keep(consumerCost); err != nil {
			return err
		}
		read, err := d.consumer()
		if err == nil {
			err = d.identify(&read)
		}
		s.Consumers = append(s.Consumers, read.ConsumerSample)
		return err
	})
}

func (d *statsDecoder) consumer() (consumerAnswer, error) {
	var c consumerAnswer
	err := d.object(func(key []byte) (err error) {
		switch string(key) {
		case "consumerName":
			c.Name, err = d.sharedText("consumerName")
		case "connectedSince":
			c.ConnectedSince, err = d.timestamp("connectedSince")
		case "avgMessagesPerEntry":
			c.MeanBatch, err = amount(d.integer("avgMessagesPerEntry"))
		case "availablePermits":
			var permits number
			permits, err = d.integer("availablePermits")
			c.Permits = permits.value
		case "unackedMessages":
			c.UnackedMessages, err = amount(d.integer("unackedMessages"))
		case "metadata":
			err = d.consumerMetadata(&c)
		default:
			err = d.skip()
		}
		return err
	})
	return c, err
}

func (d *statsDecoder) consumerMetadata(c *consumerAnswer) error {
	if null, err := d.null("metadata"); null || err != nil {
		return err
	}
	return d.object(func(key []byte) (err error) {
		switch string(key) {
		case "id":
			c.component, err = d.sharedText("id")
		case "instance_id":
			c.instance, err = d.sharedText("instance_id")
		case "application":
			c.application, err = d.sharedText("application")
		default:
			err = d.skip()
		}
		return err
	})
}
