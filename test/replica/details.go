// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// details is the part of Pulsar's FunctionDetails (Function.proto) that our instances need, in protobuf's JSON.
type details struct {
	Tenant        string `json:"tenant"`
	Namespace     string `json:"namespace"`
	Name          string `json:"name"`
	ClassName     string `json:"className"`
	UserConfig    string `json:"userConfig"`
	AutoAck       bool   `json:"autoAck"`
	Parallelism   int    `json:"parallelism"`
	ComponentType string `json:"componentType"`
	Source        source `json:"source"`
	Sink          sink   `json:"sink"`
	Retain        bool   `json:"retainOrdering,omitempty"`
	RetainKey     bool   `json:"retainKeyOrdering,omitempty"`
	Position      string `json:"subscriptionPosition"`
}

type source struct {
	TypeClassName    string           `json:"typeClassName"`
	InputSpecs       map[string]input `json:"inputSpecs"`
	SubscriptionName string           `json:"subscriptionName"`
	SubscriptionType string           `json:"subscriptionType"`
	Position         string           `json:"subscriptionPosition"`
	RedeliverMillis  int64            `json:"negativeAckRedeliveryDelayMs"`
}

type input struct {
	Queue struct {
		Value int `json:"value"`
	} `json:"receiverQueueSize"`
}

type sink struct {
	TypeClassName     string `json:"typeClassName"`
	Topic             string `json:"topic,omitempty"`
	ForwardProperties bool   `json:"forwardSourceMessageProperty,omitempty"`
}

// sinkOf returns the output, or none. It forwards the properties of the input, as is Pulsar's default.
func sinkOf(in Instance) sink {
	if in.Output == "" {
		return sink{TypeClassName: "java.lang.Void"}
	}
	return sink{TypeClassName: "[B", Topic: in.Output, ForwardProperties: true}
}

// userConfig is the user configuration that our functions read.
type userConfig struct {
	Collector     string `json:"collector"`
	Token         string `json:"token"`
	ServiceMicros string `json:"serviceMicros"`
	FailEvery     string `json:"failEvery"`
}

// configure encodes the user configuration of an instance.
func configure(in Instance, collector, token string) (string, error) {
	config, err := json.Marshal(userConfig{
		Collector: collector, Token: token,
		ServiceMicros: strconv.FormatInt(in.ServiceTime.Microseconds(), 10), FailEvery: strconv.Itoa(in.FailEvery),
	})
	if err != nil {
		return "", fmt.Errorf("writing the user configuration of %s: %w", in.FQFN(), err)
	}
	return string(config), nil
}

// describe encodes --function_details of an instance of the class.
func describe(in Instance, class, config string) (string, error) {
	if in.TopicPattern != "" || len(in.Topics) == 0 {
		return "", fmt.Errorf("replica.Instance has Topics %q and TopicPattern %q: it needs topics, only light replicas "+
			"take a pattern", in.Topics, in.TopicPattern)
	}
	if in.Output != "" && in.AsyncRequests > 0 {
		return "", fmt.Errorf("replica.Instance.Output is %q: an asynchronous function has none", in.Output)
	}
	inputs := map[string]input{}
	for _, topic := range in.Topics {
		var spec input
		spec.Queue.Value = in.ReceiverQueueSize
		inputs[topic] = spec
	}
	text, err := json.Marshal(details{
		Tenant: in.Tenant, Namespace: in.Namespace, Name: in.Name, ClassName: class, UserConfig: config,
		AutoAck: true, Parallelism: in.ID + 1, ComponentType: "FUNCTION", Position: "EARLIEST",
		Retain: in.SubscriptionType == Failover, RetainKey: in.SubscriptionType == KeyShared,
		Source: source{
			TypeClassName: "[B", InputSpecs: inputs, SubscriptionName: in.Subscription, Position: "EARLIEST",
			SubscriptionType: strings.ToUpper(in.SubscriptionType), RedeliverMillis: in.RedeliverAfter.Milliseconds(),
		},
		Sink: sinkOf(in),
	})
	if err != nil {
		return "", fmt.Errorf("writing the details of %s: %w", in.FQFN(), err)
	}
	return string(text), nil
}
