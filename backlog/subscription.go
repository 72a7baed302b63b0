// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"
	"strings"
)

// Topic is one topic of one cluster, by its complete name without a partition suffix,
// such as persistent://public/default/orders.
type Topic struct {
	Cluster Cluster
	Name    string
}

// Subscription is what a Function consumes: one subscription name on all of its input topics.
type Subscription struct {
	Cluster Cluster
	// Name as Pulsar spells it, such as public/default/resize.
	Name string
	// Topics are complete names, sorted, each once.
	Topics []string
	// Patterns are complete regular expressions of topics, such as persistent://media/images/in-.*, sorted, each once: all
	// topics of the namespace that match by their whole name are consumed too, as they come and go. WithPatterns sets
	// them.
	Patterns []string
	// Bytes requests the backlog in bytes too, which costs the broker a lock for each subscription.
	Bytes bool
	// Workload names the instances that count for the reading themselves, as the InstanceSource understands it; empty
	// for none.
	Workload string
}

// NewSubscription returns the subscription with its topics completed (orders becomes
// persistent://public/default/orders), sorted and each named once.
func NewSubscription(cluster Cluster, name string, topics ...string) Subscription {
	complete := make([]string, 0, len(topics))
	for _, topic := range topics {
		complete = append(complete, CompleteTopicName(topic))
	}
	slices.Sort(complete)
	return Subscription{Cluster: cluster, Name: name, Topics: slices.Compact(complete)}
}

// firstInput is the first topic, or the first pattern where there is none.
func (s Subscription) firstInput() (input Topic, some bool) {
	for _, names := range [][]string{s.Topics, s.Patterns} {
		if len(names) > 0 {
			return Topic{Cluster: s.Cluster, Name: names[0]}, true
		}
	}
	return Topic{}, false
}

// Equal says whether both track the same thing.
func (s Subscription) Equal(other Subscription) bool {
	return s.Cluster == other.Cluster && s.Name == other.Name && s.Bytes == other.Bytes && s.Workload == other.Workload &&
		slices.Equal(s.Topics, other.Topics) && slices.Equal(s.Patterns, other.Patterns)
}

// Namespace is a Pulsar namespace of one cluster, such as public/default.
type Namespace struct {
	Cluster Cluster
	Name    string
}

// NamespaceOf is the Pulsar namespace of a complete topic name or pattern.
func NamespaceOf(cluster Cluster, topic string) Namespace {
	_, path, _ := strings.Cut(topic, "://")
	tenant, rest, _ := strings.Cut(path, "/")
	namespace, _, _ := strings.Cut(rest, "/")
	return Namespace{Cluster: cluster, Name: tenant + "/" + namespace}
}

// IsEntityName says whether Pulsar allows it as the name of a tenant or a namespace: letters, digits and -=:._ (but not
// a step in a path, which would lead to another resource).
//
// Source: org.apache.pulsar.common.naming.NamedEntity.
func IsEntityName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("-=:._", r)
	})
}

// CompleteTopicName expands the short forms that Pulsar accepts: a topic alone is in public/default, and without a
// domain it is persistent.
//
// Source: Pulsar's TopicName.get (org.apache.pulsar.common.naming).
func CompleteTopicName(name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	if strings.Count(name, "/") == 0 {
		return "persistent://public/default/" + name
	}
	return "persistent://" + name
}
