// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// WorkerConfig is the needed part of the function worker's answer to a GET of a function, sink or source. It has all
// inputs as inputSpecs, however they were configured.
//
// Source: org.apache.pulsar.common.functions.FunctionConfig, org.apache.pulsar.common.io.SinkConfig and SourceConfig.
type WorkerConfig struct {
	Tenant            string                 `json:"tenant"`
	Namespace         string                 `json:"namespace"`
	Name              string                 `json:"name"`
	InputSpecs        map[string]workerInput `json:"inputSpecs"`
	Output            string                 `json:"output"`
	SubName           string                 `json:"subName"`
	SinkSubscription  string                 `json:"sourceSubscriptionName"`
	Guarantees        string                 `json:"processingGuarantees"`
	RetainOrdering    bool                   `json:"retainOrdering"`
	RetainKeyOrdering bool                   `json:"retainKeyOrdering"`
	Runtime           Runtime                `json:"runtime"`
	Parallelism       *int                   `json:"parallelism"`
	BatchSource       *struct{}              `json:"batchSourceConfig"`
	Window            *window                `json:"windowConfig"`
}

type workerInput struct {
	// RegexPattern is isRegexPattern in a Function resource.
	RegexPattern bool `json:"regexPattern"`
	// ConsumerProperties are present for sinks; for functions only in 4.2.4 (not in 4.0.8 and 5.0.0-M1).
	ConsumerProperties map[string]string `json:"consumerProperties"`
}

// FullName is tenant/namespace/name.
func (c WorkerConfig) FullName() string { return fullName(c.Tenant, c.Namespace, c.Name) }

// Function is the function that the answer describes. An error means that no worker sends such an answer.
func (c WorkerConfig) Function(kind Kind) (Function, error) {
	if err := c.check(kind); err != nil {
		return Function{}, err
	}
	d := delivery{
		guarantees:        c.Guarantees,
		retainOrdering:    c.RetainOrdering,
		retainKeyOrdering: c.RetainKeyOrdering,
		window:            c.Window,
	}
	f := Function{
		Kind:              kind,
		Tenant:            c.Tenant,
		Namespace:         c.Namespace,
		Name:              c.Name,
		Runtime:           c.runtime(),
		Output:            c.Output,
		SubscriptionType:  d.subscriptionType(),
		SubscriptionName:  cmp.Or(c.SubName, c.SinkSubscription),
		NeverAcknowledges: d.neverAcknowledges(),
	}
	if kind == KindSource {
		f.Batch, f.SubscriptionType = c.BatchSource != nil, backlog.Shared
		return f, nil
	}
	f.Inputs = make(map[string]Input, len(c.InputSpecs))
	for text, spec := range c.InputSpecs {
		f.Inputs[text] = Input{IsPattern: spec.RegexPattern, ConsumerProperties: spec.ConsumerProperties}
	}
	return f, nil
}

func (c WorkerConfig) check(kind Kind) error {
	switch {
	case c.Parallelism == nil:
		return errors.New("parallelism is missing")
	case *c.Parallelism < 0:
		return fmt.Errorf("parallelism is %d", *c.Parallelism)
	case kind == KindFunction && c.Runtime == "":
		return errors.New("runtime is missing")
	case kind != KindSource && len(c.InputSpecs) == 0:
		return errors.New("inputSpecs is missing")
	}
	if _, nameless := c.InputSpecs[""]; nameless {
		return errors.New("an input has no name")
	}
	switch c.runtime() {
	case Java, Python, Go:
		return nil
	default:
		return fmt.Errorf("runtime is %q", backlog.Quote(string(c.Runtime)))
	}
}

// runtime is set only for functions: sinks and sources are Java.
func (c WorkerConfig) runtime() Runtime { return cmp.Or(c.Runtime, Java) }
