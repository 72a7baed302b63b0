// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// topicSelector leaves out namespaces and brokers, which have no such label, and topics that keep no backlog.
	topicSelector   = `topic=~"persistent://.+"`
	partitionSuffix = "-partition-"
	// notPartitioned is the value of label partition of a topic that is none.
	notPartitioned = "-1"
	// mostCount is far above any count, and what a float64 holds exactly.
	mostCount = 1 << 53
)

// findings are what the series say of the wanted topics.
type findings struct {
	cluster backlog.Cluster
	wanted  func(backlog.Topic) bool
	// names are the values of the labels that tell Pulsar clusters apart.
	names     map[string]struct{}
	published map[string]int64
	backlog   map[subscription]int64
	consumers map[subscription]int64
}

type subscription struct{ topic, name string }

func newFindings(cluster backlog.Cluster, wanted func(backlog.Topic) bool) *findings {
	return &findings{
		cluster: cluster, wanted: wanted, names: map[string]struct{}{},
		published: map[string]int64{}, backlog: map[subscription]int64{}, consumers: map[subscription]int64{},
	}
}

// add takes the values of one series. What cannot be right is left out.
func (f *findings) add(series string, vector model.Vector) {
	for _, sample := range vector {
		// A label that Prometheus has itself, as a label of the target, makes it rename the broker's.
		f.names[strings.Trim(string(sample.Metric["cluster"]+" "+sample.Metric["exported_cluster"]), " ")] = struct{}{}
		topic, ok := topicName(sample.Metric)
		value := float64(sample.Value)
		if !ok || !(value >= 0 && value <= mostCount) || !f.wants(topic) { // NaN is in no range
			continue
		}
		if series == publishedSeries {
			f.published[topic] = max(f.published[topic], int64(value))
			continue
		}
		name, there := sample.Metric["subscription"]
		if !there {
			continue
		}
		target := f.backlog
		if series == consumersSeries {
			target = f.consumers
		}
		key := subscription{topic: topic, name: string(name)}
		target[key] = max(target[key], int64(value))
	}
}

func (f *findings) wants(topic string) bool {
	base := withoutPartition(topic)
	return f.wanted(backlog.Topic{Cluster: f.cluster, Name: base}) ||
		base != topic && f.wanted(backlog.Topic{Cluster: f.cluster, Name: topic}) // a partition may be an input by itself
}

// clusters are the different Pulsar clusters, sorted.
func (f *findings) clusters() []string { return slices.Sorted(maps.Keys(f.names)) }

// topics joins what was found: a subscription needs all three series, or its numbers would be half unknown.
func (f *findings) topics() map[string]backlog.BulkTopic {
	topics := make(map[string]backlog.BulkTopic, len(f.published))
	for name, published := range f.published {
		topics[name] = backlog.BulkTopic{PublishedMessages: published, Subscriptions: map[string]backlog.BulkSubscription{}}
	}
	for key, entries := range f.backlog {
		consumers, counted := f.consumers[key]
		if topic, known := topics[key.topic]; known && counted {
			topic.Subscriptions[key.name] = backlog.BulkSubscription{BacklogEntries: entries, Consumers: int(consumers)}
		}
	}
	return topics
}

// topicName is the complete name of the topic or partition, whichever way the broker labels it.
func topicName(labels model.Metric) (string, bool) {
	topic, partition := string(labels["topic"]), string(labels["partition"])
	if !strings.HasPrefix(topic, "persistent://") {
		return "", false
	}
	if partition == "" || partition == notPartitioned {
		return topic, true
	}
	name := topic + partitionSuffix + partition
	return name, withoutPartition(name) == topic
}

// withoutPartition takes the partition off a name.
//
// Source: org.apache.pulsar.common.naming.TopicName.getPartitionedTopicName.
func withoutPartition(name string) string {
	at := strings.LastIndex(name, partitionSuffix)
	if at < 0 {
		return name
	}
	digits := name[at+len(partitionSuffix):]
	if index, err := strconv.Atoi(digits); err != nil || index < 0 || strconv.Itoa(index) != digits {
		return name
	}
	return name[:at]
}
