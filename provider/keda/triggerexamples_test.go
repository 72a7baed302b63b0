// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// metadata of a trigger.
type metadata = map[string]string

// good is valid metadata with its decoded trigger, without the object.
func good() map[string]struct {
	metadata metadata
	want     Trigger
} {
	component := function.Component{Kind: function.KindFunction, Tenant: "public", Namespace: "default", Name: "resize"}
	sink := function.Component{Kind: function.KindSink, Tenant: "media", Namespace: "images", Name: "archive.v2"}
	orders := Subject{Topics: "persistent://public/default/orders", Subscription: "resize"}
	return map[string]struct {
		metadata metadata
		want     Trigger
	}{
		"a policy's decision": {metadata{"policy": "resize"}, Trigger{Subject: Subject{Policy: "resize"}}},
		"with KEDA's own keys": {
			metadata{
				"policy": "resize", "scalerAddress": "scaler.pulsar:6000", "enableTLS": "true", "unsafeSsl": "false",
				"scalerAddressFromEnv": "x:1",
			},
			Trigger{Subject: Subject{Policy: "resize"}},
		},
		"one strategy of a policy": {
			metadata{"policy": "resize.v2", "strategy": "RatePerReplica", "activationMessages": "10"},
			Trigger{Subject: Subject{Policy: "resize.v2"}, Strategy: v1alpha1.StrategyRatePerReplica, ActivationMessages: 10},
		},
		"an object by its backlog": {
			metadata{"target": "StatefulSet/pf-public-default-resize", "messagesPerReplica": "500"},
			Trigger{
				Subject:  Subject{Target: Target{"StatefulSet", "pf-public-default-resize"}},
				Strategy: v1alpha1.StrategyBacklogPerReplica, Threshold: 500,
			},
		},
		"a Sink that is to be busy": {
			metadata{"target": "Sink/archive", "targetPercent": "100"},
			Trigger{Subject: Subject{Target: Target{"Sink", "archive"}}, Strategy: v1alpha1.StrategyUtilization, Threshold: 100},
		},
		"a function in the default namespace": {
			metadata{"function": "resize", "messagesPerReplica": "1000000000000"},
			Trigger{Subject: Subject{Component: component}, Strategy: v1alpha1.StrategyBacklogPerReplica, Threshold: 1e12},
		},
		"a sink by its full name at a connection": {
			metadata{
				"sink": "media/images/archive.v2", "connection": "east-1", "strategy": "Utilization",
				"targetPercent": "70",
			},
			Trigger{
				Subject: Subject{Component: sink, Connection: "east-1"}, Strategy: v1alpha1.StrategyUtilization,
				Threshold: 70,
			},
		},
		"a rate as a quantity": {
			metadata{"topic": "orders", "subscription": "resize", "messagesPerSecondPerReplica": "2500m"},
			Trigger{Subject: orders, Strategy: v1alpha1.StrategyRatePerReplica, Threshold: 2.5},
		},
		"a rate as the decimal that it is": {
			metadata{
				"topic": "orders", "subscription": "resize", "messagesPerSecondPerReplica": "300m",
				"activationMessages": "1000000000000",
			},
			Trigger{Subject: orders, Strategy: v1alpha1.StrategyRatePerReplica, Threshold: 0.3, ActivationMessages: 1e12},
		},
		"the largest rate": {
			metadata{"topic": "orders", "subscription": "resize", "messagesPerSecondPerReplica": "1T"},
			Trigger{Subject: orders, Strategy: v1alpha1.StrategyRatePerReplica, Threshold: 1e12},
		},
		"topics in any order and spelling, each once": {
			metadata{
				"topic":        "media/images/b, orders,persistent://public/default/orders , persistent://media/images/a",
				"subscription": "public/default/re size", "messagesPerReplica": "10",
			},
			Trigger{
				Subject: Subject{
					Topics:       "persistent://media/images/a,persistent://media/images/b,persistent://public/default/orders",
					Subscription: "public/default/re size",
				},
				Strategy: v1alpha1.StrategyBacklogPerReplica, Threshold: 10,
			},
		},
		"the strategy in words of its own": {
			metadata{
				"topic": "orders", "subscription": "resize", "strategy": "BacklogPerReplica", "messagesPerReplica": "1",
				"activationMessages": "0",
			},
			Trigger{Subject: orders, Strategy: v1alpha1.StrategyBacklogPerReplica, Threshold: 1},
		},
	}
}

// bad is invalid metadata with its problems. Beyond is set if a pattern of the schema cannot express one.
func bad() map[string]struct {
	metadata metadata
	want     []string
	beyond   bool
} {
	const write = "to scale without one, write an AutoscalingPolicy of ten lines (mode: Recommend, minReplicas, " +
		"maxReplicas, " +
		"scaleTargetRef) and set policy to its name instead"
	const component = "must be a name, which is looked for in public/default, or tenant/namespace/name"
	const topics = "must be up to 100 persistent topics with commas between them, each a name in public/default or " +
		"tenant/namespace/topic"
	return map[string]struct {
		metadata metadata
		want     []string
		beyond   bool
	}{
		"nothing": {
			metadata: metadata{"scalerAddress": "scaler:6000"},
			want: []string{"what to scale on is missing: set one of policy, target (such as Function/resize), function, " +
				"sink, and topic with subscription"},
		},
		"two things at once": {
			metadata: metadata{
				"policy": "a", "topic": "orders",
				"subscription": "s",
			}, want: []string{"policy and topic exclude each other: keep one of them"},
		},
		"a key that is unknown": {
			metadata: metadata{"topic": "orders", "subscription": "s", "threshold": "10", "messagesPerReplica": "1"},
			want: []string{"threshold cannot be set: the keys of a trigger with topic are activationMessages, " +
				"connection, messagesPerReplica, messagesPerSecondPerReplica, strategy, subscription, topic"},
		},
		"keys of the built-in scaler": {
			metadata: metadata{
				"adminURL": "http://pulsar:8080", "topic": "orders", "subscription": "s", "authModes": "bearer",
				"bearerToken": "secret", "messagesPerReplica": "1",
			},
			want: []string{"adminURL, authModes and bearerToken cannot be set, as in KEDA's pulsar trigger: set connection " +
				"to a name in --connections-file of the scaler (value scaler.connections of the chart), or leave it out for " +
				"the scaler's own Pulsar"},
		},
		"thresholds of the built-in scaler": {
			metadata: metadata{
				"topic": "orders", "subscription": "s", "msgBacklogThreshold": "10", "activationMsgBacklogThreshold": "1",
				"isPartitionedTopic": "true", "messagesPerReplica": "1",
			},
			want: []string{
				"activationMsgBacklogThreshold cannot be set, as in KEDA's pulsar trigger: set activationMessages",
				"msgBacklogThreshold cannot be set, as in KEDA's pulsar trigger: set messagesPerReplica, which counts messages " +
					"and not batches",
				"isPartitionedTopic cannot be set, as in KEDA's pulsar trigger: set topic to the topic without a partition: " +
					"partitions are found",
			},
		},
		"a threshold of the policy": {
			metadata: metadata{"policy": "a", "connection": "east", "messagesPerReplica": "10"},
			want: []string{"connection and messagesPerReplica cannot be set: the keys of a trigger with policy are " +
				"activationMessages, policy, strategy"},
		},
		"values from the environment": {
			metadata: metadata{"topicFromEnv": "hidden", "subscription": "s", "messagesPerReplica": "1"},
			want: []string{"topicFromEnv cannot be set: KEDA reads such values from the environment of the target's " +
				"container, which a Function or a policy does not have, and omits the key; set the value itself, without FromEnv"},
		},
		"a topic without its subscription": {
			metadata: metadata{"topic": "orders", "messagesPerReplica": "1"},
			want: []string{"subscription is missing: set subscription, it must be the subscription's name as Pulsar " +
				"spells it"},
		},
		"a subscription without its topic": {
			metadata: metadata{"subscription": "s", "messagesPerReplica": "1"},
			want:     []string{"topic is missing: set topic, it " + topics},
		},
		"an empty name": {
			metadata: metadata{"policy": ""},
			want:     []string{`policy is "", must be the name of an AutoscalingPolicy in the ScaledObject's namespace`},
		},
		"a kind that is not measured": {
			metadata: metadata{"target": "Deployment/resize", "messagesPerReplica": "1"},
			want: []string{`target is "Deployment/resize", must be Function, Sink, Source or StatefulSet and a name in the ScaledObject's namespace, ` +
				"such as Function/resize"},
		},
		"a name of two parts": {
			metadata: metadata{"function": "images/resize", "messagesPerReplica": "1"},
			want:     []string{`function is "images/resize", ` + component},
		},
		"a step in a path": {
			metadata: metadata{"sink": "../default/resize", "messagesPerReplica": "1"},
			want:     []string{`sink is "../default/resize", ` + component}, beyond: true,
		},
		"a topic of two parts": {
			metadata: metadata{"topic": "a/b", "subscription": "s", "messagesPerReplica": "1"},
			want:     []string{`topic is "a/b", ` + topics},
		},
		"an empty topic in the list": {
			metadata: metadata{"topic": "a,,b", "subscription": "s", "messagesPerReplica": "1"},
			want:     []string{`topic is "a,,b", ` + topics},
		},
		"non-persistent topics": {
			metadata: metadata{"topic": "a,non-persistent://public/default/b", "subscription": "s", "messagesPerReplica": "1"},
			want:     []string{`topic is "a,non-persistent://public/default/b", must not have non-persistent topics, which keep no backlog: use persistent ones`},
		},
		"too many topics": {
			metadata: metadata{"topic": strings.Repeat("a,", 100) + "b", "subscription": "s", "messagesPerReplica": "1"},
			want: []string{`topic is "` + strings.Repeat("a,", 28) +
				`a...", has 101 topics, must have at most 100: use another trigger for the rest`}, beyond: true,
		},
		"an unknown strategy": {
			metadata: metadata{"target": "Sink/a", "strategy": "capacity", "activationMessages": "1"},
			want:     []string{`strategy is "capacity", must be BacklogPerReplica, RatePerReplica or Utilization`},
		},
		"no messages": {
			metadata: metadata{
				"target":             "Sink/a",
				"messagesPerReplica": "0",
			}, want: []string{`messagesPerReplica is "0", must be a whole number from 1 to 1000000000000`},
		},
		"too many messages": {
			metadata: metadata{"target": "Sink/a", "messagesPerReplica": "1000000000001"},
			want:     []string{`messagesPerReplica is "1000000000001", must be a whole number from 1 to 1000000000000`},
		},
		"no rate": {
			metadata: metadata{"target": "Sink/a", "messagesPerSecondPerReplica": "0.0"},
			want: []string{
				`messagesPerSecondPerReplica is "0.0", must be messages per second from 0.001 to 10^12, in thousandths, such as 100 or 2500m`,
			},
			beyond: true,
		},
		"a rate that KEDA would round": {
			metadata: metadata{"target": "Sink/a", "messagesPerSecondPerReplica": "0.0015"},
			want: []string{
				`messagesPerSecondPerReplica is "0.0015", must be messages per second from 0.001 to 10^12, in thousandths, such as ` +
					`100 or 2500m`,
			},
			beyond: true,
		},
		"a rate that KEDA would write as 0": {
			metadata: metadata{"target": "Sink/a", "messagesPerSecondPerReplica": "0.4m"},
			want: []string{
				`messagesPerSecondPerReplica is "0.4m", must be messages per second from 0.001 to 10^12, in thousandths, such as ` +
					`100 or 2500m`,
			},
			beyond: true,
		},
		"too high a rate": {
			metadata: metadata{"target": "Sink/a", "messagesPerSecondPerReplica": "1000000000001"},
			want: []string{
				`messagesPerSecondPerReplica is "1000000000001", must be messages per second from 0.001 to 10^12, in thousandths, such as 100 or 2500m`,
			},
			beyond: true,
		},
		"busier than busy": {
			metadata: metadata{
				"target":        "Sink/a",
				"targetPercent": "101",
			}, want: []string{`targetPercent is "101", must be a whole number from 1 to 100`},
		},
		"two thresholds": {
			metadata: metadata{"target": "Sink/a", "messagesPerReplica": "5", "targetPercent": "70"},
			want:     []string{"messagesPerReplica and targetPercent belong to different strategies: keep one of them"},
		},
		"the threshold of another strategy": {
			metadata: metadata{"target": "Sink/a", "strategy": "RatePerReplica", "messagesPerReplica": "5"},
			want: []string{"messagesPerReplica belongs to strategy BacklogPerReplica, not to RatePerReplica: change " +
				"strategy or remove messagesPerReplica"},
		},
		"a strategy without its threshold": {
			metadata: metadata{"target": "Sink/a", "strategy": "Utilization"},
			want: []string{"targetPercent is missing, which strategy Utilization needs: it must be a whole number from 1 " +
				"to 100"},
		},
		"how busy a subscription is": {
			metadata: metadata{"topic": "a", "subscription": "s", "strategy": "Utilization"},
			want: []string{"strategy Utilization cannot be set with topic: its consumers do not report how busy they are; " +
				"use target, function or sink"},
		},
		"an activation for a decision": {
			metadata: metadata{"policy": "a", "activationMessages": "5"},
			want: []string{"activationMessages does not apply to the decision of a policy: remove it, or set strategy " +
				"to BacklogPerReplica, " +
				"RatePerReplica or Utilization"},
		},
		"no threshold": {
			metadata: metadata{"topic": "a", "subscription": "s", "activationMessages": "5"},
			want:     []string{"a threshold is missing: set messagesPerReplica or messagesPerSecondPerReplica; " + write},
		},
		"an objective instead of a threshold": {
			metadata: metadata{"target": "Sink/a", "latencyObjective": "60s"},
			want: []string{
				"latencyObjective cannot be set: the keys of a trigger with target are activationMessages, messagesPerReplica, " +
					"messagesPerSecondPerReplica, strategy, target, targetPercent",
				"a threshold is missing: set messagesPerReplica, messagesPerSecondPerReplica or targetPercent; " + write,
			},
		},
		"the capacity of a target": {
			metadata: metadata{"target": "Sink/a", "strategy": "Capacity"},
			want:     []string{`strategy is "Capacity", which is for policies alone: set a threshold; ` + write},
		},
		"the capacity of a policy": {
			metadata: metadata{"policy": "a", "strategy": "Capacity"},
			want:     []string{`strategy is "Capacity", which is in the decision of the policy: remove strategy to follow it`},
		},
		"several mistakes, each once": {
			metadata: metadata{"function": "a b", "subscription": "s", "targetPercent": "x", "activationMessages": "y"},
			want: []string{
				"subscription cannot be set: the keys of a trigger with function are activationMessages, connection, function, " +
					"messagesPerReplica, messagesPerSecondPerReplica, strategy, targetPercent",
				`activationMessages is "y", must be a whole number from 0 to 1000000000000`, `function is "a b", ` + component,
				`targetPercent is "x", must be a whole number from 1 to 100`,
			},
		},
		"bytes that are no text": {
			metadata: metadata{"policy": "a\xff"},
			want:     []string{`policy is "a\xff", must be the name of an AutoscalingPolicy in the ScaledObject's namespace`},
		},
	}
}
