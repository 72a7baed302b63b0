// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// maxEntries bounds the topics and subscriptions that are kept for one broker.
const maxEntries = 250_000

// bulkDecoder reads broker-stats/topics: {namespace: {bundle: {domain: {topic: ...}}}}.
//
// Source: org.apache.pulsar.broker.service.PulsarStats and persistent.PersistentTopic.updateRates. Names differ from
// those of /stats, and a number may be missing.
type bulkDecoder struct {
	*scanner
	wanted func(name string) bool
	topics map[string]backlog.BulkTopic
	// entries is the number of kept topics and subscriptions.
	entries int
}

// decodeBrokerStats keeps the wanted topics of domain persistent. A topic with an invalid number is left out, which
// makes it unknown.
func decodeBrokerStats(r io.Reader, wanted func(name string) bool) (map[string]backlog.BulkTopic, error) {
	d := &bulkDecoder{scanner: newScanner(r), wanted: wanted, topics: map[string]backlog.BulkTopic{}}
	namespaces := d.object
	bundles := func([]byte) error { return d.object(d.domains) }
	err := namespaces(func([]byte) error { return d.object(bundles) })
	if err := d.finish(err); err != nil {
		return nil, err
	}
	return d.topics, nil
}

func (d *bulkDecoder) domains(domain []byte) error {
	if string(domain) != "persistent" {
		return d.skip()
	}
	return d.object(func(key []byte) error {
		name := validText(key)
		if !d.wanted(name) {
			return d.skip()
		}
		topic, ok, err := d.topic()
		if err == nil && ok {
			d.topics[name] = topic
		}
		return err
	})
}

// topic reports whether its numbers are valid.
func (d *bulkDecoder) topic() (topic backlog.BulkTopic, ok bool, err error) {
	if err := d.count(); err != nil {
		return backlog.BulkTopic{}, false, err
	}
	var published number
	sound := true
	err = d.object(func(key []byte) (err error) {
		switch string(key) {
		case "msgInCount":
			published, err = d.integer("msgInCount")
			return err
		case "subscriptions":
			if err := d.once("subscriptions"); err != nil {
				return err
			}
			topic.Subscriptions = map[string]backlog.BulkSubscription{}
			return d.object(func(key []byte) error {
				name := validText(key)
				subscription, ok, err := d.subscription()
				topic.Subscriptions[name], sound = subscription, sound && ok
				return err
			})
		default:
			return d.skip()
		}
	})
	if err != nil {
		return backlog.BulkTopic{}, false, err
	}
	topic.PublishedMessages, err = published.counter("msgInCount")
	return topic, sound && err == nil && topic.Subscriptions != nil, nil
}

func (d *bulkDecoder) subscription() (subscription backlog.BulkSubscription, ok bool, err error) {
	if err := d.count(); err != nil {
		return backlog.BulkSubscription{}, false, err
	}
	var entries number
	err = d.object(func(key []byte) (err error) {
		switch string(key) {
		case "msgBacklog":
			entries, err = d.integer("msgBacklog")
			return err
		case "consumers":
			if err := d.once("consumers"); err != nil {
				return err
			}
			return d.array(func() error {
				subscription.Consumers++
				return d.skip()
			})
		default:
			return d.skip()
		}
	})
	if err != nil {
		return backlog.BulkSubscription{}, false, err
	}
	subscription.BacklogEntries, err = entries.counter("msgBacklog")
	return subscription, err == nil, nil
}

func (d *bulkDecoder) count() error {
	if d.entries++; d.entries > maxEntries {
		return fmt.Errorf("more than %d topics and subscriptions", maxEntries)
	}
	return nil
}

// decodeBrokers reads the IDs of brokers, host:port, and returns their URLs.
//
// Source: org.apache.pulsar.broker.PulsarService.getBrokerId.
func decodeBrokers(r io.Reader, scheme string) ([]*url.URL, error) {
	var ids []string
	if err := decodeJSON(r, &ids); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errors.New("it names no broker")
	}
	brokers := make([]*url.URL, 0, len(ids))
	for _, id := range ids {
		broker, err := parseBase(scheme + "://" + id)
		if err != nil {
			return nil, fmt.Errorf("broker %q is not host:port", backlog.Quote(id))
		}
		brokers = append(brokers, broker)
	}
	return brokers, nil
}
