// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"
	"strconv"
	"strings"
)

// Cluster identifies a Pulsar cluster and how it is spoken to. Owners that track topics of equal Clusters share the
// fetches.
type Cluster struct {
	// AdminURL of the brokers, in the spelling of ParseAdminURL.
	AdminURL string
	// Access names the credentials, never holds them: they may rotate under one name. Empty for the program's own.
	Access string
}

// Credentials are what a client shows to a Pulsar cluster and how it checks the cluster's certificate, in Pulsar's own
// terms (client.conf). The zero value shows nothing. Values are comparable: equal credentials may share a client.
type Credentials struct {
	// Plugin is authPlugin: a class name such as org.apache.pulsar.client.impl.auth.AuthenticationToken, or its short form
	// (token, tls, basic, oauth2); empty for none.
	Plugin string
	// Params are authParams in the plugin's own syntax: token:..., file:///..., or JSON.
	Params string
	// TrustCerts has the PEM certificates that sign the brokers'; empty for the system's.
	TrustCerts string
	// AllowInsecureConnection leaves the certificate unchecked.
	AllowInsecureConnection bool
	// SkipHostnameVerification leaves the name in the certificate unchecked.
	SkipHostnameVerification bool
}

// String shows no secret, so that no log and no message can: the plugin's name alone.
func (c Credentials) String() string {
	if c.Plugin == "" {
		return "no credentials"
	}
	return "credentials for " + strconv.Quote(c.Plugin)
}

// GoString is String, for %#v.
func (c Credentials) GoString() string { return c.String() }

// MarshalText is String too, for structured logs.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

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

// NonPersistent are the topics and patterns of it that keep no backlog, so that they say nothing of the work.
func (s Subscription) NonPersistent() (names []string) {
	for _, name := range slices.Concat(s.Topics, s.Patterns) {
		if isNonPersistent(name) {
			names = append(names, name)
		}
	}
	return names
}

func isNonPersistent(name string) bool { return strings.HasPrefix(name, "non-persistent://") }

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
