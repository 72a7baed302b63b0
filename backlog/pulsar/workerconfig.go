// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
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
	// ConsumerProperties are shown of sinks; of functions by 4.2.4 alone (not by 4.0.8 and 5.0.0-M1).
	ConsumerProperties map[string]string `json:"consumerProperties"`
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

// config is what the component consumes; ErrUnsupported where its inputs do not share one subscription.
func (c configAnswer) config(component backlog.Component) (backlog.ComponentConfig, error) {
	config := backlog.ComponentConfig{
		Parallelism: *c.Parallelism,
		Runtime:     c.runtime(),
		Guarantees:  c.Guarantees,
		AutoAck:     c.AutoAck,

		NeverAcknowledges: c.neverAcknowledges(),
	}
	if component.Kind == backlog.SourceKind {
		config.Subscription, config.Type = batchSubscription(component), backlog.Shared
	} else {
		as, err := c.agreed(component)
		if err != nil {
			return backlog.ComponentConfig{}, err
		}
		config.Subscription, config.Type = c.subscription(component, as.Name), as.Type
	}
	config.Subscription.Workload = component.Workload()
	return config, nil
}

// agreed is the subscription that all inputs share: with two there is no one backlog.
//
// Source: org.apache.pulsar.functions.instance.InstanceUtils.getDefaultSubscriptionName.
func (c configAnswer) agreed(component backlog.Component) (agreed backlog.Subscribes, err error) {
	told := backlog.Subscribes{
		Name: cmp.Or(c.SubName, c.SinkSubscription, component.FullName()),
		Type: c.subscriptionType(),
	}
	for i, input := range slices.Sorted(maps.Keys(c.InputSpecs)) {
		as := told
		if c.runtime() == backlog.JavaRuntime {
			as = told.With(c.InputSpecs[input].ConsumerProperties)
		}
		if !as.Type.Exists() {
			return backlog.Subscribes{},
				backlog.Because(backlog.ErrUnsupported,
					"consumerProperties of input %s of %s %s have subscriptionType %q, which Pulsar does "+
						"not know: use Shared, Failover or Key_Shared", backlog.Quote(
						input), component.Kind, component.FullName(), backlog.Quote(string(as.Type)))
		}
		if i > 0 && as != agreed {
			return backlog.Subscribes{},
				backlog.Because(backlog.ErrUnsupported,
					"the inputs of %s %s do not share one subscription: consumerProperties make %s "+
						"subscribe as %s (%s) and another as %s (%s): set subscriptionName and subscriptionType alike for all inputs",
					component.Kind,
					component.FullName(), backlog.Quote(
						input), backlog.Quote(as.Name), backlog.Quote(string(as.Type)), backlog.Quote(agreed.Name),
					backlog.Quote(string(agreed.Type)))
		}
		agreed = as
	}
	return agreed, nil
}

// subscription of that name on all inputs.
func (c configAnswer) subscription(component backlog.Component, name string) backlog.Subscription {
	var topics, patterns []string
	for input, spec := range c.InputSpecs {
		if spec.RegexPattern {
			patterns = append(patterns, backlog.CompleteTopicName(input)) // the client completes patterns like names
		} else {
			topics = append(topics, input)
		}
	}
	subscription := backlog.NewSubscription(component.Cluster, name, topics...)
	slices.Sort(patterns)
	subscription.Patterns = slices.Compact(patterns)
	return subscription
}

// subscriptionType is the documented rule. It is the same for all runtimes: workers refuse retainKeyOrdering for Go
// until the release whose Go instances follow it (apache/pulsar#26414, #26421). An instance that was built with an
// older library subscribes as Shared then, which the broker reports.
//
// Source: org.apache.pulsar.functions.utils.FunctionConfigUtils.convert and SinkConfigUtils.convert.
func (c configAnswer) subscriptionType() backlog.SubscriptionType {
	switch {
	case c.RetainOrdering || c.Guarantees == "EFFECTIVELY_ONCE":
		return backlog.Failover
	case c.RetainKeyOrdering:
		return backlog.KeyShared
	default:
		return backlog.Shared
	}
}

// neverAcknowledges says that neither the framework nor the window acknowledges.
//
// Source: Pulsar's WindowFunctionExecutor and JavaInstanceRunnable.handleResult: with MANUAL outside, only the window's
// own guarantee makes it acknowledge.
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
