// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// consumed is what the replicas of a workload share.
type consumed struct {
	// subscription has no cluster yet.
	subscription backlog.Subscription
	// kind of subscription that the replicas ask for.
	kind backlog.SubscriptionType
}

// input is one entry of what Function Mesh gives to an instance.
type input struct {
	isPattern  bool
	properties map[string]string
}

// consumed is what the object consumes, or why that cannot be told and what to do about it.
func (w workload) consumed() (c consumed, invalid string) {
	if w.Kind == kindSource {
		return w.batch()
	}
	if class := w.sourceClass(); class != "" {
		return consumed{},
			fmt.Sprintf(
				"the %s reads from %s (className of spec.sourceConfig) and not from Pulsar, so there is no backlog to scale on: "+
					"use a HorizontalPodAutoscaler on its CPU", w.Kind, class)
	}
	inputs, invalid := w.inputs()
	if invalid != "" {
		return consumed{}, invalid
	}
	var topics []string
	var patterns []backlog.Pattern
	for text, in := range inputs {
		if !in.isPattern {
			topics = append(topics, text)
			continue
		}
		pattern, err := backlog.ParsePattern(text)
		if err != nil {
			return consumed{}, fmt.Sprintf("the inputs of the %s cannot be told: %s", w.Kind, err)
		}
		patterns = append(patterns, pattern)
	}
	name, kind, invalid := w.agreed(inputs)
	subscription := backlog.NewSubscription(backlog.Cluster{}, name, topics...).WithPatterns(patterns...)
	return consumed{subscription: subscription, kind: kind}, invalid
}

// sourceClass is what a Function reads with in place of Pulsar's own source; empty for that. With the other settings
// alone it reads its topics.
//
// Source: Function Mesh's buildSourceConnectorDetails (controllers/spec/utils.go).
func (w workload) sourceClass() string {
	class, _ := w.Spec.SourceConfig["className"].(string)
	if configs, _ := w.Spec.SourceConfig["configs"].(map[string]any); class == "" && configs["className"] != nil {
		class = fmt.Sprint(configs["className"])
	}
	return class
}

// batch is what a Source consumes: tasks that its first replica discovers and all of them share. Other Sources consume
// nothing.
//
// Source: Pulsar's BatchSourceExecutor, Function Mesh's controllers/spec/source.go.
func (w workload) batch() (c consumed, invalid string) {
	if w.Spec.BatchSourceConfig == nil {
		return consumed{},
			"the Source brings data into Pulsar and consumes nothing there, so there is no backlog to scale on: only Sources " +
				"with " +
				"spec.batchSourceConfig can be scaled; use a HorizontalPodAutoscaler on its CPU"
	}
	topic := "persistent://" + w.component() + "-intermediate"
	return consumed{
		subscription: backlog.NewSubscription(backlog.Cluster{}, w.subscriptionName(), topic), kind: w.subscriptionType(),
	}, ""
}

// inputs are what the object consumes by the text that names it, or why that cannot be told.
//
// Source: Function Mesh's generateInputSpec (controllers/spec/utils.go) fills one map from five fields, the later ones
// over the earlier: a pattern that is named again without isRegexPattern is a topic. Its Go runtime is given topics[0]
// and nothing else.
func (w workload) inputs() (inputs map[string]input, invalid string) {
	in := w.Spec.Input
	if w.Spec.Golang != nil {
		if len(in.Topics) == 0 || in.Topics[0] == "" {
			return nil, "a Go function consumes the first of spec.input.topics only, and there is none: set spec.input.topics"
		}
		return map[string]input{in.Topics[0]: {}}, ""
	}
	inputs = map[string]input{}
	for _, topic := range in.Topics {
		inputs[topic] = input{}
	}
	inputs[in.TopicPattern] = input{isPattern: true}
	for _, sources := range []map[string]string{in.CustomSerdeSources, in.CustomSchemaSources} {
		for topic := range sources {
			inputs[topic] = input{}
		}
	}
	for topic, source := range in.SourceSpecs {
		inputs[topic] = input{isPattern: source.IsRegexPattern, properties: source.ConsumerProperties}
	}
	delete(inputs, "")
	if len(inputs) == 0 {
		return nil, fmt.Sprintf("the %s has no input topics, so it has no backlog: list them in spec.input.topics", w.Kind)
	}
	return inputs, ""
}

// agreed is the subscription that all inputs share. By its consumer properties an input may have a subscription of its
// own; with two there is no one backlog.
func (w workload) agreed(inputs map[string]input) (name string, kind backlog.SubscriptionType, invalid string) {
	isJava := w.Spec.Golang == nil && w.Spec.Python == nil && w.Spec.GenericRuntime == nil
	told := backlog.Subscribes{Name: w.subscriptionName(), Type: w.subscriptionType()}
	for i, text := range slices.Sorted(maps.Keys(inputs)) {
		as := told
		if isJava {
			as = told.With(inputs[text].properties)
		}
		if !as.Type.Exists() {
			return "", "",
				fmt.Sprintf(
					"consumerProperties of input %s have %s %q, which Pulsar does not know: use Shared, Failover or Key_Shared",
					text, backlog.PropertySubscriptionType, as.Type)
		}
		if i > 0 && (as.Name != name || as.Type != kind) {
			return "", "",
				fmt.Sprintf(
					"the inputs of the %s do not share one subscription: consumerProperties make %s subscribe as %s (%s) and another "+
						"as %s (%s); set %s and %s alike for all inputs, or use spec.subscriptionName", w.Kind, text, as.Name, as.Type,
					name, kind,
					backlog.PropertySubscriptionName, backlog.PropertySubscriptionType)
		}
		name, kind = as.Name, as.Type
	}
	return name, kind, ""
}
