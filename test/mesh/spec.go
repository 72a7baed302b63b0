// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

const (
	annotationManaged = Group + "/managed"
	// effectivelyOnce makes a subscription Failover.
	effectivelyOnce = "effectively_once"
)

// spec is the part of a Function, Sink or Source that the Operator reads; names are Function Mesh's.
type spec struct {
	Name      string `json:"name"`
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	ClassName string `json:"className"`
	Image     string `json:"image"`

	Replicas    *int32 `json:"replicas"`
	MinReplicas *int32 `json:"minReplicas"`
	MaxReplicas *int32 `json:"maxReplicas"`

	Input               input  `json:"input"`
	Output              output `json:"output"`
	SubscriptionName    string `json:"subscriptionName"`
	ProcessingGuarantee string `json:"processingGuarantee"`
	RetainOrdering      bool   `json:"retainOrdering"`
	RetainKeyOrdering   bool   `json:"retainKeyOrdering"`
	TimeoutMillis       int32  `json:"timeout"`
	Pulsar              pulsar `json:"pulsar"`

	Resources  corev1.ResourceRequirements `json:"resources"`
	FuncConfig map[string]any              `json:"funcConfig"`
	SinkConfig map[string]any              `json:"sinkConfig"`
}

type input struct {
	Topics       []string              `json:"topics"`
	TopicPattern string                `json:"topicPattern"`
	SourceSpecs  map[string]sourceSpec `json:"sourceSpecs"`
}

type output struct {
	Topic string `json:"topic"`
}

type sourceSpec struct {
	IsRegexPattern    bool   `json:"isRegexPattern"`
	ReceiverQueueSize *int32 `json:"receiverQueueSize"`
}

type pulsar struct {
	PulsarConfig string `json:"pulsarConfig"`
}

// knobs configure a replica of the tests, in spec.funcConfig, or spec.sinkConfig of a Sink. Unknown keys are errors.
type knobs struct {
	ServiceTimeMillis int64 `json:"serviceTimeMillis,omitempty"`
	StartDelayMillis  int64 `json:"startDelayMillis,omitempty"`
}

// component is a decoded Function, Sink or Source.
type component struct {
	kind, namespace, name string
	spec                  spec
	managed               bool
}

// decode sets the defaults of Function Mesh's webhook. Absent replicas become minReplicas. The real webhook writes that
// into the spec, so tests should set replicas.
func decode(object *unstructured.Unstructured) (component, error) {
	c := component{
		kind: object.GetKind(), namespace: object.GetNamespace(), name: object.GetName(),
		managed: object.GetAnnotations()[annotationManaged] != "false",
	}
	fields, _, err := unstructured.NestedMap(object.Object, "spec")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c.spec)
	}
	if err != nil {
		return component{}, fmt.Errorf("reading %s %s/%s: %w", c.kind, c.namespace, c.name, err)
	}
	s := &c.spec
	s.Tenant, s.Namespace, s.Name = cmp.Or(s.Tenant, "public"), cmp.Or(s.Namespace, "default"), cmp.Or(s.Name, c.name)
	one := int32(1)
	if s.MinReplicas == nil {
		s.MinReplicas = &one
	}
	if s.Replicas == nil {
		s.Replicas = s.MinReplicas
	}
	return c, nil
}

// instance returns replica id of the component, without the broker's address. Its errors require a change of the spec.
func (c component) instance(id int) (replica.Instance, error) {
	k, err := c.knobs()
	if err != nil {
		return replica.Instance{}, err
	}
	topics, pattern, err := c.topics()
	if err != nil {
		return replica.Instance{}, err
	}
	queue := int32(0)
	for _, source := range c.spec.Input.SourceSpecs {
		if source.ReceiverQueueSize != nil {
			queue = max(queue, *source.ReceiverQueueSize) // a replica has one queue for all topics
		}
	}
	return replica.Instance{
		Tenant: c.spec.Tenant, Namespace: c.spec.Namespace, Name: c.spec.Name, ID: id, Topics: topics, TopicPattern: pattern,
		Output:           outputName(c.spec.Output.Topic),
		Subscription:     cmp.Or(c.spec.SubscriptionName, c.spec.Tenant+"/"+c.spec.Namespace+"/"+c.spec.Name),
		SubscriptionType: c.subscriptionType(),
		ServiceTime:      time.Duration(k.ServiceTimeMillis) * time.Millisecond,
		StartDelay:       time.Duration(k.StartDelayMillis) * time.Millisecond,
		RedeliverAfter:   time.Duration(c.spec.TimeoutMillis) * time.Millisecond, ReceiverQueueSize: int(queue),
	}, nil
}

func (c component) knobs() (k knobs, err error) {
	field, config := "spec.funcConfig", c.spec.FuncConfig
	if c.kind == KindSink {
		field, config = "spec.sinkConfig", c.spec.SinkConfig
	}
	text, err := json.Marshal(config)
	if err != nil {
		return knobs{}, fmt.Errorf("reading %s: %w", field, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&k); err != nil {
		return knobs{},
			fmt.Errorf("reading %s, which may have serviceTimeMillis and startDelayMillis: %w", field, err)
	}
	return k, nil
}

// topics returns the union of Function Mesh's generateInputSpec (controllers/spec/utils.go), without customSerdeSources
// and customSchemaSources, as full names in order, or a pattern: replicas here take one pattern, or names.
func (c component) topics() (topics []string, pattern string, err error) {
	in := c.spec.Input
	names, patterns := map[string]bool{}, map[string]bool{}
	for _, topic := range in.Topics {
		names[fullName(topic)] = true
	}
	for topic, source := range in.SourceSpecs {
		if source.IsRegexPattern {
			patterns[fullName(topic)] = true
			continue
		}
		names[fullName(topic)] = true
	}
	// The same key without isRegexPattern makes the pattern a topic.
	if _, named := in.SourceSpecs[in.TopicPattern]; in.TopicPattern != "" && !named {
		patterns[fullName(in.TopicPattern)] = true
	}
	switch {
	case len(names)+len(patterns) == 0:
		return nil, "", errors.New("spec.input names no topic: set spec.input.topics")
	case len(patterns) > 1 || (len(patterns) == 1 && len(names) > 0):
		return nil, "",
			fmt.Errorf("spec.input has the patterns %q and the topics %q: replicas here take one pattern, or topics by name",
				slices.Sorted(maps.Keys(patterns)), slices.Sorted(maps.Keys(names)))
	case len(patterns) == 1:
		return nil, slices.Collect(maps.Keys(patterns))[0], nil
	}
	return slices.Sorted(maps.Keys(names)), "", nil
}

// outputName completes the name of an output; empty is none.
func outputName(topic string) string {
	if topic == "" {
		return ""
	}
	return fullName(topic)
}

// fullName completes a short topic name.
func fullName(topic string) string {
	switch {
	case strings.Contains(topic, "://"):
		return topic
	case strings.Count(topic, "/") == 2:
		return "persistent://" + topic
	}
	return "persistent://public/default/" + topic
}

// subscriptionType follows Function Mesh's getSubscriptionType (controllers/spec/utils.go).
func (c component) subscriptionType() string {
	switch s := c.spec; {
	case s.RetainOrdering || s.ProcessingGuarantee == effectivelyOnce:
		return replica.Failover
	case s.RetainKeyOrdering:
		return replica.KeyShared
	}
	return replica.Shared
}
