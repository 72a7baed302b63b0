// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// sample checks one partition. See the package comment for negative numbers.
func (t topicAnswer) sample(index int) (backlog.PartitionSample, error) {
	published, err := counter(t.MsgInCounter, "msgInCounter")
	if err != nil {
		return backlog.PartitionSample{}, err
	}
	if t.Subscriptions == nil {
		return backlog.PartitionSample{}, errors.New("subscriptions is missing")
	}
	sample := backlog.PartitionSample{
		Index:             index,
		PublishedMessages: published,
		Subscriptions:     make([]backlog.SubscriptionSample, 0, len(t.Subscriptions)),
	}
	for name, answer := range t.Subscriptions {
		subscription, err := answer.sample(name)
		if err != nil {
			return backlog.PartitionSample{}, fmt.Errorf("subscription %s: %w", name, err)
		}
		sample.Subscriptions = append(sample.Subscriptions, subscription)
	}
	return sample, nil
}

func (s subscriptionAnswer) sample(name string) (backlog.SubscriptionSample, error) {
	entries, err := counter(s.MsgBacklog, "msgBacklog")
	if err != nil {
		return backlog.SubscriptionSample{}, err
	}
	delivered, err := counter(s.MsgOutCounter, "msgOutCounter")
	if err != nil {
		return backlog.SubscriptionSample{}, err
	}
	if s.MsgDelayed == nil || s.UnackedMessages == nil {
		return backlog.SubscriptionSample{}, errors.New("msgDelayed or unackedMessages is missing")
	}
	sample := backlog.SubscriptionSample{
		Name:              name,
		Type:              backlog.SubscriptionType(s.Type),
		BacklogEntries:    entries,
		DelayedMessages:   max(0, *s.MsgDelayed),
		UnackedMessages:   max(0, *s.UnackedMessages),
		DeliveredMessages: delivered,
		Blocked:           s.Blocked,
	}
	if s.Type == "" {
		sample.Type = backlog.NoType
	}
	if len(s.Consumers) > 0 {
		sample.Consumers = make([]backlog.ConsumerSample, 0, len(s.Consumers))
	}
	for _, consumer := range s.Consumers {
		sample.Consumers = append(sample.Consumers, backlog.ConsumerSample{
			ID:        consumer.id(),
			MeanBatch: max(0, consumer.AvgMessagesPerEntry),
		})
	}
	return sample, nil
}

// id is the Function's instance where the consumer says it: instances name their consumers at random, and anew on each
// partition.
//
// Source: org.apache.pulsar.functions.instance.InstanceUtils.getProperties.
func (c consumerAnswer) id() string {
	if c.Metadata.ID != "" && c.Metadata.InstanceID != "" {
		return c.Metadata.ID + "#" + c.Metadata.InstanceID
	}
	return c.Name
}

func counter(number *int64, name string) (int64, error) {
	switch {
	case number == nil:
		return 0, fmt.Errorf("%s is missing", name)
	case *number < 0:
		return 0, fmt.Errorf("%s is %d", name, *number)
	default:
		return *number, nil
	}
}
