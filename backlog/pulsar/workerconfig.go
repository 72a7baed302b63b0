// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// configAnswer is what a GET of a function, sink or source shows, as far as it is needed. A GET gives all inputs as
// inputSpecs, whichever way they were configured.
//
// Source: org.apache.pulsar.common.functions.FunctionConfig, org.apache.pulsar.common.io.SinkConfig and SourceConfig.
type configAnswer struct {
	Tenant            string                 `json:"tenant"`
	Namespace         string                 `json:"namespace"`
	Name              string                 `json:"name"`
	InputSpecs        map[string]inputAnswer `json:"inputSpecs"`
	SubName           string                 `json:"subName"`
	SinkSubscription  string                 `json:"sourceSubscriptionName"`
	Guarantees        string                 `json:"processingGuarantees"`
	RetainOrdering    bool                   `json:"retainOrdering"`
	RetainKeyOrdering bool                   `json:"retainKeyOrdering"`
	Runtime           string                 `json:"runtime"`
	AutoAck           bool                   `json:"autoAck"`
	Parallelism       *int                   `json:"parallelism"`
	BatchSource       *struct{}              `json:"batchSourceConfig"`
	Window            *windowAnswer          `json:"windowConfig"`
}

type windowAnswer struct {
	Guarantees string `json:"processingGuarantees"`
}

type inputAnswer struct {
	// RegexPattern is isRegexPattern in a Function resource.
	RegexPattern bool `json:"regexPattern"`
}

// decodeConfig reads the configuration of the component.
func decodeConfig(r io.Reader, component backlog.Component) (configAnswer, error) {
	var answer configAnswer
	if err := decodeJSON(r, &answer); err != nil {
		return configAnswer{}, err
	}
	asked, got := component.FullName(), answer.Tenant+"/"+answer.Namespace+"/"+answer.Name
	switch {
	case got != asked:
		return configAnswer{}, fmt.Errorf("it is about %s", backlog.Quote(got))
	case answer.Parallelism == nil:
		return configAnswer{}, errors.New("parallelism is missing")
	case *answer.Parallelism < 0:
		return configAnswer{}, fmt.Errorf("parallelism is %d", *answer.Parallelism)
	case component.Kind == backlog.FunctionKind && answer.Runtime == "":
		return configAnswer{}, errors.New("runtime is missing")
	case component.Kind != backlog.SourceKind && len(answer.InputSpecs) == 0:
		return configAnswer{}, errors.New("inputSpecs is missing")
	}
	if _, nameless := answer.InputSpecs[""]; nameless {
		return configAnswer{}, errors.New("an input has no name")
	}
	switch answer.runtime() {
	case backlog.JavaRuntime, backlog.PythonRuntime, backlog.GoRuntime:
		return answer, nil
	default:
		return configAnswer{}, fmt.Errorf("runtime is %q", backlog.Quote(answer.Runtime))
	}
}

// runtime is named for functions alone: sinks and sources are Java.
func (c configAnswer) runtime() backlog.Runtime {
	return backlog.Runtime(cmp.Or(c.Runtime, string(backlog.JavaRuntime)))
}

func (c configAnswer) config(component backlog.Component) backlog.ComponentConfig {
	config := backlog.ComponentConfig{
		Type:        c.subscriptionType(),
		Parallelism: *c.Parallelism,
		Runtime:     c.runtime(),
		Guarantees:  c.Guarantees,
		AutoAck:     c.AutoAck,

		NeverAcknowledges: c.neverAcknowledges(),
	}
	if component.Kind == backlog.SourceKind {
		config.Subscription, config.Type = batchSubscription(component), backlog.Shared
	} else {
		config.Subscription = c.subscription(component)
	}
	config.Subscription.Workload = component.Workload()
	return config
}

// subscription has the name that the instances subscribe with.
//
// Source: org.apache.pulsar.functions.instance.InstanceUtils.getDefaultSubscriptionName.
func (c configAnswer) subscription(component backlog.Component) backlog.Subscription {
	var topics, patterns []string
	for name, input := range c.InputSpecs {
		if input.RegexPattern {
			patterns = append(patterns, backlog.CompleteTopicName(name)) // the client completes patterns like names
		} else {
			topics = append(topics, name)
		}
	}
	subscription := backlog.NewSubscription(component.Cluster, cmp.Or(c.SubName, c.SinkSubscription, component.FullName()), topics...)
	slices.Sort(patterns)
	subscription.Patterns = slices.Compact(patterns)
	return subscription
}

// subscriptionType is the documented rule. Go instances know Failover and Shared only.
//
// Source: org.apache.pulsar.functions.utils.FunctionConfigUtils.convert and SinkConfigUtils.convert; for Go,
// pulsar-function-go/pf/instance.go (setupConsumer).
func (c configAnswer) subscriptionType() backlog.SubscriptionType {
	switch {
	case c.RetainOrdering || c.Guarantees == "EFFECTIVELY_ONCE":
		return backlog.Failover
	case c.RetainKeyOrdering && c.runtime() != backlog.GoRuntime:
		return backlog.KeyShared
	default:
		return backlog.Shared
	}
}

// neverAcknowledges says that neither the framework nor the window acknowledges.
//
// Source: Pulsar's WindowFunctionExecutor and JavaInstanceRunnable.handleResult: with MANUAL outside, only the window's own
// guarantee makes it acknowledge.
func (c configAnswer) neverAcknowledges() bool {
	return c.Window != nil && c.Guarantees == "MANUAL" && c.Window.Guarantees == ""
}

// batchSubscription is what a batch source consumes: its instance 0 discovers tasks and publishes them for all.
//
// Source: org.apache.pulsar.functions.utils.SourceConfigUtils, computeBatchSourceIntermediateTopicName and
// computeBatchSourceInstanceSubscriptionName; org.apache.pulsar.functions.source.batch.BatchSourceExecutor.
func batchSubscription(component backlog.Component) backlog.Subscription {
	return backlog.NewSubscription(component.Cluster, "BatchSourceExecutor-"+component.FullName(),
		"persistent://"+component.FullName()+"-intermediate")
}
