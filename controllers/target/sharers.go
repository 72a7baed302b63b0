// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// indexSubscription is the index of Functions, Sinks, Sources and StatefulSets of the function worker by what they
// consume: see indexKeys.
const indexSubscription = "subscription"

// indexWorkload is the function of that index. An object without a known subscription is not indexed, as it cannot be
// scaled either.
func indexWorkload(object client.Object) []string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	fields, ok := object.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return nil
	}
	w, err := decodeWorkload(kind, fields.UnstructuredContent())
	if err != nil {
		return nil
	}
	subscription, _, err := w.function().Subscription()
	if err != nil {
		return nil
	}
	return indexKeys(subscription)
}

// indexKeys are the keys of a subscription, each once: its topics, and the Pulsar namespaces of its topics and
// patterns. The name alone is not enough: thousands of Functions without a common topic may use the same one.
func indexKeys(s backlog.Subscription) []string {
	name := shortName(s.Name)
	var keys []string
	for _, topic := range s.Topics {
		keys = append(keys, name+keyTopic+topic, name+keyTopicsOf+backlog.NamespaceOf(s.Cluster, topic).Name)
	}
	for _, pattern := range s.Patterns {
		keys = append(keys, name+keyPatternsOf+backlog.NamespaceOf(s.Cluster, pattern).Name)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// overlapKeys are the keys of the subscriptions that may have a topic in common with s.
func overlapKeys(s backlog.Subscription) []string {
	name := shortName(s.Name)
	var keys []string
	for _, topic := range s.Topics {
		keys = append(keys, name+keyTopic+topic, name+keyPatternsOf+backlog.NamespaceOf(s.Cluster, topic).Name)
	}
	for _, pattern := range s.Patterns {
		namespace := backlog.NamespaceOf(s.Cluster, pattern).Name
		keys = append(keys, name+keyTopicsOf+namespace, name+keyPatternsOf+namespace)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// The kinds of keys.
const (
	keyTopic      = " topic "
	keyTopicsOf   = " topics of "
	keyPatternsOf = " patterns of "
)

// shortName is a hash of a subscription's name, which may be a megabyte long and is in the key of each topic.
func shortName(name string) string {
	hash := sha256.Sum256([]byte(name))
	return hex.EncodeToString(hash[:8])
}

const (
	// maxSharers bounds how many consumers of a subscription are reported.
	maxSharers = 10
	// maxCandidates bounds how many objects are compared: each may name a ConfigMap of its own, which is read. A platform
	// rarely runs one Function on clusters of their own in more namespaces.
	maxCandidates = 100
)

// Sharers finds what consumes the same as a target.
type Sharers struct {
	reader   *Reader
	clusters *clusters
}

// Of returns the other consumers of the target's subscription, on the same cluster and at least one common topic, such
// as "Function media/crop", sorted: Functions, Sinks, Sources, StatefulSets of the function worker, and targets of
// policies that name a subscription. It skips objects that it cannot decode: the policy's user did not write them.
func (s *Sharers) Of(ctx context.Context, namespace string, target *plan.Target) ([]string, error) {
	if target == nil || target.Invalid != "" {
		return nil, nil
	}
	candidates, err := s.candidates(ctx, namespace, target)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		if len(found) < maxSharers && s.shares(ctx, c, target) {
			found = append(found, fmt.Sprintf("%s %s/%s", c.GetKind(), c.GetNamespace(), c.GetName()))
		}
	}
	named, err := s.declaredSharers(ctx, namespace, target)
	if err != nil {
		return nil, err
	}
	found = append(found, named...)
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), maxSharers)], nil
}

// candidates are the indexed objects without the target, each once. Those in its namespace come first, as the
// likeliest. The order is fixed, since the index has none and the status must not change with it.
func (s *Sharers) candidates(ctx context.Context, namespace string, target *plan.Target) ([]*unstructured.Unstructured,
	error,
) {
	var all []*unstructured.Unstructured
	for _, kind := range cluster.MeasuredKinds() {
		for _, key := range overlapKeys(target.Subscription) {
			objects, err := s.reader.List(ctx, kind, client.MatchingFields{indexSubscription: key})
			if err != nil {
				return nil, err
			}
			for i := range objects {
				object := &objects[i]
				if kind != target.Ref.Kind || object.GetNamespace() != namespace || object.GetName() != target.Ref.Name {
					all = append(all, object)
				}
			}
		}
	}
	otherNamespace := func(object *unstructured.Unstructured) int {
		if object.GetNamespace() == namespace {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(otherNamespace(a)-otherNamespace(b), strings.Compare(a.GetNamespace(), b.GetNamespace()),
			strings.Compare(a.GetName(), b.GetName()),
			strings.Compare(a.GetKind(), b.GetKind()))
	})
	return slices.CompactFunc(all, func(a, b *unstructured.Unstructured) bool {
		return a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName() && a.GetKind() == b.GetKind()
	}), nil
}

// shares reports whether an object consumes from the same cluster and topics. It does not look for a policy that names
// another cluster. It compares clusters first: that costs less, and the same Function on many clusters is common.
func (s *Sharers) shares(ctx context.Context, object *unstructured.Unstructured, target *plan.Target) bool {
	if object.GetKind() == cluster.KindStatefulSet {
		return s.setShares(ctx, object, target)
	}
	with := target.Subscription
	configMap, _, _ := unstructured.NestedString(object.Object, "spec", "pulsar", "pulsarConfig")
	if s.clusters.lastKnown(ctx,
		types.NamespacedName{Namespace: object.GetNamespace(), Name: configMap}) != with.Cluster.AdminURL {
		return false
	}
	w, err := decodeWorkload(object.GetKind(), object.Object)
	if err != nil {
		return false
	}
	subscription, _, err := w.function().Subscription()
	return err == nil && subscription.Name == with.Name && overlap(subscription, with)
}

// overlap reports whether two subscriptions of one name have a topic in common by their inputs. It misses a topic that
// two different patterns match.
func overlap(a, b backlog.Subscription) bool {
	for _, topic := range a.Topics {
		if slices.Contains(b.Topics, topic) || matchesAny(b.Patterns, topic) {
			return true
		}
	}
	return slices.ContainsFunc(b.Topics, func(topic string) bool { return matchesAny(a.Patterns, topic) }) ||
		slices.ContainsFunc(a.Patterns, func(pattern string) bool { return slices.Contains(b.Patterns, pattern) })
}

// matchesAny compiles at each call: few objects have the same subscription.
func matchesAny(patterns []string, topic string) bool {
	return slices.ContainsFunc(patterns, func(text string) bool {
		pattern, err := backlog.ParsePattern(text)
		return err == nil && pattern.Match(topic)
	})
}
