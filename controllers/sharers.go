// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// indexSubscription is the index of Functions, Sinks and Sources by the name of the subscription that they consume.
const indexSubscription = "subscription"

// indexWorkload is the function of that index. What cannot be told is not indexed, as it cannot be scaled either.
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
	c, invalid := w.consumed()
	if invalid != "" {
		return nil
	}
	return []string{c.subscription.Name}
}

// maxSharers bounds what is named, and looked at, of those who share a subscription.
const maxSharers = 10

// sharers are the other Functions, Sinks and Sources in Kubernetes that consume what the target consumes: the same
// subscription of the same cluster on at least one common topic, as "Function media/crop", sorted. The index makes it one
// look per kind, which finds nothing as a rule.
func (t *Targets) sharers(ctx context.Context, namespace string, target *policy.Target) ([]string, error) {
	if target == nil || target.Invalid != "" {
		return nil, nil
	}
	var found []string
	for _, kind := range workloadKinds() {
		if !t.config.Installed(kind) {
			continue
		}
		list := newWorkloadList(kind)
		if err := t.config.Workloads.List(ctx, list, client.MatchingFields{indexSubscription: target.Subscription.Name},
			client.UnsafeDisableDeepCopy, client.Limit(maxSharers+1)); err != nil {
			return nil, fmt.Errorf("listing objects of kind %s by subscription: %w", kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if kind == target.Ref.Kind && object.GetNamespace() == namespace && object.GetName() == target.Ref.Name {
				continue
			}
			shares, err := t.shares(ctx, kind, object.Object, target.Subscription)
			if err != nil {
				return nil, err
			}
			if shares {
				found = append(found, fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName()))
			}
		}
	}
	slices.Sort(found)
	return found[:min(len(found), maxSharers)], nil
}

// shares says whether an object consumes from the same cluster and topics. A policy of its own may send it to another
// cluster; that is not looked up.
func (t *Targets) shares(ctx context.Context, kind string, object map[string]any, with backlog.Subscription) (bool, error) {
	w, err := decodeWorkload(kind, object)
	if err != nil {
		return false, nil //nolint:nilerr // it is not in the index then
	}
	c, invalid := w.consumed()
	if invalid != "" || !overlap(c.subscription, with) {
		return false, nil
	}
	cluster, invalid, err := t.clusters.find(ctx, nil, w.configMap())
	return invalid == "" && cluster.AdminURL == with.Cluster.AdminURL, err
}

// overlap says whether two subscriptions have a topic in common as far as their inputs tell. Two different patterns may
// meet in a topic unnoticed.
func overlap(a, b backlog.Subscription) bool {
	for _, topic := range a.Topics {
		if slices.Contains(b.Topics, topic) || matchesAny(b.Patterns, topic) {
			return true
		}
	}
	return slices.ContainsFunc(b.Topics, func(topic string) bool { return matchesAny(a.Patterns, topic) }) ||
		slices.ContainsFunc(a.Patterns, func(pattern string) bool { return slices.Contains(b.Patterns, pattern) })
}

// matchesAny compiles as it goes: it is asked for the rare objects that have the same subscription.
func matchesAny(patterns []string, topic string) bool {
	return slices.ContainsFunc(patterns, func(text string) bool {
		pattern, err := backlog.ParsePattern(text)
		return err == nil && pattern.Match(topic)
	})
}
