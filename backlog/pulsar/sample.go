// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/reader"
)

// sample validates one subscription. See the package comment for negative numbers.
func (d *statsDecoder) sample(s subscriptionAnswer) (sample backlog.SubscriptionSample, err error) {
	sample = s.SubscriptionSample
	if sample.BacklogEntries, err = s.backlog.counter("msgBacklog"); err != nil {
		return backlog.SubscriptionSample{}, err
	}
	if sample.DeliveredMessages, err = s.out.counter("msgOutCounter"); err != nil {
		return backlog.SubscriptionSample{}, err
	}
	if !s.delayed.present || !s.unacked.present {
		return backlog.SubscriptionSample{}, errors.New("msgDelayed or unackedMessages is missing")
	}
	sample.DelayedMessages, sample.UnackedMessages = max(0, s.delayed.value), max(0, s.unacked.value)
	switch sample.Type {
	case backlog.Exclusive, backlog.Shared, backlog.Failover, backlog.KeyShared, backlog.NoType:
	case "":
		sample.Type = backlog.NoType
	default:
		return backlog.SubscriptionSample{}, fmt.Errorf("type is %s, which is no subscription type of Pulsar",
			backlog.Quote(string(sample.Type)))
	}
	d.addBytes(&sample, s.bytes)
	d.addAge(&sample, s.earliest)
	return sample, nil
}

// skipOther skips a subscription that was not requested. It keeps the first names, for the error of a missing one,
// without those of Watch.
func (d *statsDecoder) skipOther(key []byte) error {
	if bytes.HasPrefix(key, []byte(reader.SubscriptionPrefix)) {
		return d.skip()
	}
	d.unread++
	if len(d.others.Names) < backlog.MostOthers {
		name, err := d.share(key[:min(len(key), backlog.MostQuoted)])
		if err != nil {
			return err
		}
		if !slices.Contains(d.others.Names, name) {
			d.others.Names = append(d.others.Names, name)
		}
	}
	d.others.More = max(d.others.More, d.unread-len(d.others.Names))
	return d.skip()
}

// addBytes adds the size. A broker without such a request, or without the parameter, sends -1.
func (d *statsDecoder) addBytes(sample *backlog.SubscriptionSample, bytes number) {
	switch {
	case !d.request.Detail.Has(backlog.Bytes):
	case !bytes.present || bytes.value < 0:
		d.unanswered |= backlog.Bytes
	default:
		sample.BacklogBytes = bytes.value
	}
}

// addAge adds the age. 0 means that the request had no age, and -1 that there is no backlog.
func (d *statsDecoder) addAge(sample *backlog.SubscriptionSample, earliest number) {
	switch {
	case !d.request.Detail.Has(backlog.Age) || earliest.value == -1:
	case !earliest.present || earliest.value <= 0:
		d.unanswered |= backlog.Age
	default:
		sample.EarliestPublishTime = time.UnixMilli(earliest.value)
	}
}

// identify sets what distinguishes the consumer from others.
//
// Source: org.apache.pulsar.functions.instance.InstanceUtils.getProperties.
func (d *statsDecoder) identify(c *consumerAnswer) (err error) {
	c.ID = c.Name
	if c.component != "" && c.instance != "" {
		// Instances name their consumers at random on each partition.
		d.text = append(append(append(d.text[:0], c.component...), '#'), c.instance...)
		c.ID, err = d.share(d.text)
	}
	// Any client may set a property "id".
	if strings.Count(c.component, "/") == 2 && (strings.HasPrefix(c.application, "pulsar-") || c.instance != "") {
		c.Component = c.component
	}
	return err
}

// throttledBy is a key that counts events of a limit; empty for other keys.
func throttledBy(key []byte) string {
	for _, name := range [...]string{
		"dispatchThrottledMsgEventsBySubscriptionLimit", "dispatchThrottledBytesEventsBySubscriptionLimit",
		"dispatchThrottledMsgEventsByTopicLimit", "dispatchThrottledBytesEventsByTopicLimit",
		"dispatchThrottledMsgEventsByBrokerLimit", "dispatchThrottledBytesEventsByBrokerLimit",
	} {
		if string(key) == name {
			return name
		}
	}
	return ""
}

// amount is an integer that is 0 if it is missing or negative.
func amount(n number, err error) (int64, error) { return max(0, n.value), err }

// counter returns a number that must exist and must not be negative.
func (n number) counter(name string) (int64, error) {
	if !n.present {
		return counter(nil, name)
	}
	return counter(&n.value, name)
}

func counter(number *int64, name string) (int64, error) {
	switch {
	case number == nil:
		return 0, fmt.Errorf("%s is missing", name)
	case *number < 0:
		return 0, fmt.Errorf("%s is %d", name, *number)
	case *number > maxExact:
		return 0, tooLarge(name, strconv.FormatInt(*number, 10))
	default:
		return *number, nil
	}
}

// sum adds counters that are not negative, and returns the largest number on an overflow.
func sum(total, more int64) int64 {
	if more = max(0, more); total > math.MaxInt64-more {
		return math.MaxInt64
	}
	return total + more
}
