// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// MeshSpec is the part of the spec of a Function, Sink or Source of Function Mesh that defines what it consumes: decode
// the spec into it, or embed it in a larger struct.
type MeshSpec struct {
	// Function Mesh's webhook sets Tenant, Namespace (Pulsar's) and Name, if it is installed.
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`

	Input               meshInput `json:"input"`
	SubscriptionName    string    `json:"subscriptionName"`
	SkipToLatest        bool      `json:"skipToLatest"`
	ProcessingGuarantee string    `json:"processingGuarantee"`
	RetainOrdering      bool      `json:"retainOrdering"`
	RetainKeyOrdering   bool      `json:"retainKeyOrdering"`
	WindowConfig        *window   `json:"windowConfig"`
	// SourceConfig of a Function replaces its input; for a Source it is the connector's configuration.
	SourceConfig map[string]any `json:"sourceConfig"`
	// BatchSourceConfig is set for Sources that discover tasks and share them through a topic.
	BatchSourceConfig *struct{} `json:"batchSourceConfig"`

	// Golang, Python and GenericRuntime are set for functions of those runtimes; the others are Java.
	Golang         *struct{} `json:"golang"`
	Python         *struct{} `json:"python"`
	GenericRuntime *struct{} `json:"genericRuntime"`
}

type meshInput struct {
	Topics              []string          `json:"topics"`
	TopicPattern        string            `json:"topicPattern"`
	CustomSerdeSources  map[string]string `json:"customSerdeSources"`
	CustomSchemaSources map[string]string `json:"customSchemaSources"`
	SourceSpecs         map[string]Input  `json:"sourceSpecs"`
}

// Function is the function that the spec of the named object describes. The defaults are those of Function Mesh's
// webhook, which not every installation runs.
func (s MeshSpec) Function(kind Kind, object string) Function {
	d := delivery{
		// Function Mesh spells them in lower case
		guarantees:     strings.ToUpper(s.ProcessingGuarantee),
		retainOrdering: s.RetainOrdering, retainKeyOrdering: s.RetainKeyOrdering, window: s.WindowConfig,
	}
	f := Function{
		Kind:              kind,
		Tenant:            cmp.Or(s.Tenant, "public"),
		Namespace:         cmp.Or(s.Namespace, "default"),
		Name:              cmp.Or(s.Name, object),
		Runtime:           s.runtime(),
		SubscriptionName:  s.SubscriptionName,
		SubscriptionType:  d.subscriptionType(),
		SkipsToLatest:     s.SkipToLatest,
		NeverAcknowledges: d.neverAcknowledges(),
	}
	switch {
	case kind == KindSource:
		f.Batch, f.SubscriptionType = s.BatchSourceConfig != nil, backlog.Shared
		return f
	case s.Golang != nil:
		// Function Mesh passes neither the guarantee nor the ordering to its Go instances.
		f.SubscriptionType = backlog.Shared
	}
	f.SourceClass, f.Inputs = s.sourceClass(), s.inputs()
	return f
}

func (s MeshSpec) runtime() Runtime {
	switch {
	case s.Golang != nil:
		return Go
	case s.Python != nil:
		return Python
	case s.GenericRuntime != nil:
		return Generic
	default:
		return Java
	}
}

// sourceClass is the class that a Function reads with instead of Pulsar's own source; empty for that one. Other
// settings alone leave Pulsar's source in place.
//
// Source: Function Mesh's buildSourceConnectorDetails (controllers/spec/utils.go).
func (s MeshSpec) sourceClass() string {
	class, _ := s.SourceConfig["className"].(string)
	if configs, _ := s.SourceConfig["configs"].(map[string]any); class == "" && configs["className"] != nil {
		class = fmt.Sprint(configs["className"])
	}
	return class
}

// inputs returns the inputs by topic or pattern.
//
// Source: Function Mesh's generateInputSpec (controllers/spec/utils.go) fills one map from five fields, where later
// fields override earlier ones: a pattern that also appears without isRegexPattern is a topic. Its Go runtime only gets
// topics[0].
func (s MeshSpec) inputs() map[string]Input {
	inputs := map[string]Input{}
	if s.Golang != nil {
		if len(s.Input.Topics) > 0 && s.Input.Topics[0] != "" {
			inputs[s.Input.Topics[0]] = Input{}
		}
		return inputs
	}
	for _, topic := range s.Input.Topics {
		inputs[topic] = Input{}
	}
	inputs[s.Input.TopicPattern] = Input{IsPattern: true}
	for _, sources := range []map[string]string{s.Input.CustomSerdeSources, s.Input.CustomSchemaSources} {
		for topic := range sources {
			inputs[topic] = Input{}
		}
	}
	maps.Copy(inputs, s.Input.SourceSpecs)
	delete(inputs, "")
	return inputs
}
