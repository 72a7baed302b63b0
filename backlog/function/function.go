// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Kind is a kind of component that a function worker runs.
type Kind string

// The kinds.
const (
	KindFunction Kind = "function"
	KindSink     Kind = "sink"
	KindSource   Kind = "source"
)

// Runtime is the language of a function as the worker spells it.
type Runtime string

// The runtimes. Sinks and sources are always Java. Only Function Mesh has Generic.
const (
	Java    Runtime = "JAVA"
	Python  Runtime = "PYTHON"
	Go      Runtime = "GO"
	Generic Runtime = "GENERIC"
)

// Function is the part of a Pulsar Function, Sink or Source that determines what it consumes, and its output.
type Function struct {
	Kind Kind
	// Tenant, Namespace and Name, such as public, default and resize.
	Tenant, Namespace, Name string
	Runtime                 Runtime
	// Inputs by the configured topic or pattern.
	Inputs map[string]Input
	// Output is the topic of its results; empty for sinks and functions without one. MeshSpec leaves it out, since caches
	// of many objects hold what that decodes.
	Output string
	// SubscriptionName is empty for Pulsar's default.
	SubscriptionName string
	// SubscriptionType is the type for all inputs, unless their consumer properties override it.
	SubscriptionType backlog.SubscriptionType
	// SkipsToLatest is skipToLatest: each instance in Java that starts resets the subscription of all, and those in Python
	// and Go ignore it. A worker's answer leaves it out.
	//
	// Source: Pulsar 4.0.8, SingleConsumerPulsarSource.open, MultiConsumerPulsarSource.open and python_instance.py.
	SkipsToLatest bool
	// SourceClass is the class that a function or sink reads with instead of Pulsar's own source; empty for that one.
	SourceClass string
	// Batch is true for a source with a first instance that discovers tasks and publishes them for all instances.
	Batch bool
	// NeverAcknowledges is true for a window function that leaves acknowledging to user code, which cannot do it.
	NeverAcknowledges bool
	// JobName is the prefix of its StatefulSet's name if it is configured; empty for the default.
	JobName string
}

// Input is the configuration of one input: of Function Mesh's sourceSpecs, or of the inputSpecs of an instance.
type Input struct {
	IsPattern bool `json:"isRegexPattern"`
	// ConsumerProperties of its consumer.
	ConsumerProperties map[string]string `json:"consumerProperties"`
}

// FullName is tenant/namespace/name.
func (f Function) FullName() string { return fullName(f.Tenant, f.Namespace, f.Name) }

// String is for messages, such as function public/default/resize.
func (f Function) String() string { return string(f.Kind) + " " + backlog.Quote(f.FullName()) }

func fullName(tenant, namespace, name string) string { return tenant + "/" + namespace + "/" + name }

// Subscription is what all instances consume, without a cluster, and the type that they request. It returns an error
// with the fix if there is no single backlog.
func (f Function) Subscription() (backlog.Subscription, backlog.SubscriptionType, error) {
	none := backlog.Subscription{}
	switch {
	case f.Kind == KindSource && f.Batch:
		return f.batchSubscription(), backlog.Shared, nil
	case f.Kind == KindSource:
		return none, "", fmt.Errorf(
			"%s brings data into Pulsar and consumes nothing there, so there is no backlog to scale on: use a "+
				"HorizontalPodAutoscaler on its CPU; only sources with batchSourceConfig can be scaled",
			f,
		)
	case f.SourceClass != "":
		return none, "", fmt.Errorf(
			"%s reads from %s (className of its source's configuration) and not from Pulsar, so there is no backlog "+
				"to scale on: use a HorizontalPodAutoscaler on its CPU",
			f,
			backlog.Quote(f.SourceClass),
		)
	case len(f.Inputs) == 0 && f.Runtime == Go:
		return none, "", errors.New(
			"a Go function consumes the first of spec.input.topics only, and there is none: set spec.input.topics",
		)
	case len(f.Inputs) == 0:
		return none, "", fmt.Errorf("%s has no input topics, so it has no backlog: list them in spec.input.topics", f)
	case f.SkipsToLatest && f.Runtime == Java:
		return none, "", fmt.Errorf("%s has skipToLatest, with which each replica that starts skips the messages that wait "+
			"for all of them: remove it", f)
	}
	topics, patterns, err := f.topics()
	if err != nil {
		return none, "", err
	}
	agreed, err := f.agreed()
	if err != nil {
		return none, "", err
	}
	return backlog.NewSubscription(backlog.Cluster{}, agreed.name, topics...).WithPatterns(patterns...), agreed.kind, nil
}

// batchSubscription is the subscription that the instances of a batch source share.
//
// Source: org.apache.pulsar.functions.utils.SourceConfigUtils, computeBatchSourceIntermediateTopicName and
// computeBatchSourceInstanceSubscriptionName; org.apache.pulsar.functions.source.batch.BatchSourceExecutor.
func (f Function) batchSubscription() backlog.Subscription {
	return backlog.NewSubscription(
		backlog.Cluster{},
		"BatchSourceExecutor-"+f.FullName(),
		"persistent://"+f.FullName()+"-intermediate",
	)
}

func (f Function) topics() (topics []string, patterns []backlog.Pattern, err error) {
	for _, text := range slices.Sorted(maps.Keys(f.Inputs)) {
		if !f.Inputs[text].IsPattern {
			topics = append(topics, text)
			continue
		}
		pattern, err := backlog.ParsePattern(text)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the inputs of %s: %w", f, err)
		}
		patterns = append(patterns, pattern)
	}
	return topics, patterns, nil
}

// subscribes is the subscription that the consumer of one input requests.
type subscribes struct {
	name string
	kind backlog.SubscriptionType
}

// agreed is the subscription that all inputs share. The consumer properties of an input may set another subscription;
// with two subscriptions there is no single backlog.
//
// Source: org.apache.pulsar.functions.instance.InstanceUtils.getDefaultSubscriptionName.
func (f Function) agreed() (agreed subscribes, err error) {
	configured := subscribes{name: cmp.Or(f.SubscriptionName, f.FullName()), kind: f.SubscriptionType}
	for i, text := range slices.Sorted(maps.Keys(f.Inputs)) {
		as := configured
		if f.Runtime == Java {
			as = configured.with(f.Inputs[text].ConsumerProperties)
		}
		switch {
		case !exists(as.kind):
			return subscribes{}, fmt.Errorf(
				"consumerProperties of input %s of %s have %s %q, which Pulsar does not know: use Shared, Failover or "+
					"Key_Shared",
				backlog.Quote(text),
				f,
				propertySubscriptionType,
				backlog.Quote(string(as.kind)),
			)
		case i > 0 && as != agreed:
			return subscribes{}, fmt.Errorf(
				"the inputs of %s do not share one subscription: consumerProperties make %s subscribe as %s and another "+
					"as %s: set %s and %s alike for all inputs",
				f,
				backlog.Quote(text),
				as,
				agreed,
				propertySubscriptionName,
				propertySubscriptionType,
			)
		}
		agreed = as
	}
	return agreed, nil
}

// Keys of the consumer properties that determine the subscription of a Java instance.
const (
	propertySubscriptionName = "subscriptionName"
	propertySubscriptionType = "subscriptionType"
)

// with is the request of a Java instance, where an input's consumer properties override the configuration. The type may
// be one that Pulsar does not have.
//
// Source: org.apache.pulsar.functions.source.PulsarSource.createConsumeBuilder (loadConf comes last); Python and Go
// pass the properties on as metadata.
func (s subscribes) with(properties map[string]string) subscribes {
	return subscribes{
		name: cmp.Or(properties[propertySubscriptionName], s.name),
		kind: backlog.SubscriptionType(cmp.Or(properties[propertySubscriptionType], string(s.kind))),
	}
}

// String is for messages, such as public/default/resize (Shared).
func (s subscribes) String() string {
	return fmt.Sprintf("%s (%s)", backlog.Quote(s.name), backlog.Quote(string(s.kind)))
}

// exists reports whether Pulsar has subscriptions of the type.
func exists(kind backlog.SubscriptionType) bool {
	return kind == backlog.Exclusive || kind == backlog.Shared || kind == backlog.Failover || kind == backlog.KeyShared
}

// delivery determines how instances subscribe and acknowledge, in the worker's spelling.
type delivery struct {
	guarantees                        string
	retainOrdering, retainKeyOrdering bool
	window                            *window
}

// window is windowConfig; all three descriptions spell it alike.
type window struct {
	Guarantees string `json:"processingGuarantees"`
}

// Values of processingGuarantees that matter here.
const (
	guaranteeEffectivelyOnce = "EFFECTIVELY_ONCE"
	guaranteeManual          = "MANUAL"
)

// subscriptionType follows the documented rule, for all runtimes: workers refuse retainKeyOrdering for Go until the
// release in which Go instances support it (apache/pulsar#26414, #26421). An instance with an older library then
// subscribes as Shared, which the broker reports.
//
// Source: org.apache.pulsar.functions.utils.FunctionConfigUtils.convert and SinkConfigUtils.convert; Function Mesh's
// getSubscriptionType (controllers/spec/utils.go).
func (d delivery) subscriptionType() backlog.SubscriptionType {
	switch {
	case d.retainOrdering || d.guarantees == guaranteeEffectivelyOnce:
		return backlog.Failover
	case d.retainKeyOrdering:
		return backlog.KeyShared
	default:
		return backlog.Shared
	}
}

// neverAcknowledges reports whether neither the framework nor the window acknowledges.
//
// Source: Pulsar's WindowFunctionExecutor and JavaInstanceRunnable.handleResult: with MANUAL outside, only the window's
// own guarantee makes it acknowledge.
func (d delivery) neverAcknowledges() bool {
	return d.window != nil && d.guarantees == guaranteeManual && d.window.Guarantees == ""
}
