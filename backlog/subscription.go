// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"
	"strconv"
	"strings"
)

// Cluster identifies a Pulsar cluster and its credentials. Owners that track topics of equal Clusters share the
// fetches.
type Cluster struct {
	// AdminURL of the brokers, as ParseAdminURL returns it.
	AdminURL string
	// Access names the credentials and never contains them: they may rotate under one name. Empty for the program's own.
	Access string
}

// Credentials are a client's credentials for a Pulsar cluster and its settings for the cluster's certificate, in
// Pulsar's terms (client.conf). The zero value has no credentials. Values are comparable: equal credentials may share a
// client.
type Credentials struct {
	// Plugin is authPlugin: a class name such as org.apache.pulsar.client.impl.auth.AuthenticationToken, or its short form
	// (token, tls, basic, oauth2); empty for none.
	Plugin string
	// Params are authParams in the plugin's own syntax: token:..., file:///..., or JSON.
	Params string
	// TrustCerts has the PEM certificates of the brokers' CA; empty for the system's.
	TrustCerts string
	// AllowInsecureConnection leaves the certificate unchecked.
	AllowInsecureConnection bool
	// SkipHostnameVerification leaves the name in the certificate unchecked.
	SkipHostnameVerification bool
}

// String returns the plugin's name, so that no log and no message has a secret.
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
	// Topics are complete names, sorted and distinct.
	Topics []string
	// Patterns are complete regular expressions of topics, such as persistent://media/images/in-.*, sorted and distinct:
	// topics of the namespace that match by their whole name are also consumed while they exist. WithPatterns sets them.
	Patterns []string
	// Bytes also requests the backlog in bytes, which costs the broker a lock for each subscription.
	Bytes bool
	// Pace is how often its topics are read at least.
	Pace Pace
	// Workload runs the instances with counters for the reading; nil for none.
	Workload Workload
}

// Workload runs instances: an Object, or a component of a function worker. Its types are comparable.
type Workload interface{ String() string }

// Object is an object of Kubernetes with a pod for each instance, such as a Function.
type Object struct{ Kind, Namespace, Name string }

// String is Kind/namespace/name, such as Function/media/resize.
func (o Object) String() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// NewSubscription returns the subscription with its topics completed (orders becomes
// persistent://public/default/orders), sorted and distinct.
func NewSubscription(cluster Cluster, name string, topics ...string) Subscription {
	complete := make([]string, 0, len(topics))
	for _, topic := range topics {
		complete = append(complete, CompleteTopicName(topic))
	}
	slices.Sort(complete)
	return Subscription{Cluster: cluster, Name: name, Topics: slices.Compact(complete)}
}

// NonPersistent are its topics that have no backlog, so that they do not count as work; patterns match none of them.
func (s Subscription) NonPersistent() (names []string) {
	for _, name := range s.Topics {
		if isNonPersistent(name) {
			names = append(names, name)
		}
	}
	return names
}

func isNonPersistent(name string) bool { return strings.HasPrefix(name, "non-persistent://") }

// ScalableDomain begins the names of scalable topics, which consist of segments that split and merge.
const ScalableDomain = "topic://"

// Equal reports whether both track the same inputs.
func (s Subscription) Equal(other Subscription) bool {
	return s.Cluster == other.Cluster && s.Name == other.Name && s.Bytes == other.Bytes && s.Pace == other.Pace &&
		s.Workload == other.Workload && slices.Equal(s.Topics, other.Topics) && slices.Equal(s.Patterns, other.Patterns)
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

// IsEntityName reports whether Pulsar allows the name for a tenant or a namespace: letters, digits and -=:._ (but not .
// or .., which would lead to another resource).
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
