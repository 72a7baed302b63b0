// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Names of Function Mesh (github.com/streamnative/function-mesh, read at v0.27.2).
const (
	functionMeshGroup   = "compute.functionmesh.io"
	functionMeshVersion = "v1alpha1"
	kindFunction        = "Function"
	kindFunctionMesh    = "FunctionMesh"
	resourceFunctions   = "functions"

	annotationManaged = functionMeshGroup + "/managed"
)

func functionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: functionMeshGroup, Version: functionMeshVersion, Kind: kindFunction}
}

func functionResource() schema.GroupResource {
	return schema.GroupResource{Group: functionMeshGroup, Resource: resourceFunctions}
}

// newFunction returns an empty Function to read into.
func newFunction() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(functionKind())
	return object
}

// function is the part of a Function that scaling rests on; all its other fields are Function Mesh's business.
type function struct {
	Metadata functionMetadata `json:"metadata"`
	Spec     functionSpec     `json:"spec"`
}

type functionMetadata struct {
	Name            string                  `json:"name"`
	Namespace       string                  `json:"namespace"`
	Annotations     map[string]string       `json:"annotations"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

type functionSpec struct {
	// Tenant, Namespace (Pulsar's) and Name are filled by Function Mesh's webhook where there is one.
	Tenant           string         `json:"tenant"`
	Namespace        string         `json:"namespace"`
	Name             string         `json:"name"`
	Replicas         *int32         `json:"replicas"`
	MaxReplicas      *int32         `json:"maxReplicas"`
	SubscriptionName string         `json:"subscriptionName"`
	Input            functionInput  `json:"input"`
	Pulsar           functionPulsar `json:"pulsar"`
	// Golang is set for functions of the Go runtime.
	Golang *struct{} `json:"golang"`
}

type functionInput struct {
	Topics              []string                  `json:"topics"`
	TopicPattern        string                    `json:"topicPattern"`
	CustomSerdeSources  map[string]string         `json:"customSerdeSources"`
	CustomSchemaSources map[string]string         `json:"customSchemaSources"`
	SourceSpecs         map[string]functionSource `json:"sourceSpecs"`
}

type functionSource struct {
	IsRegexPattern bool `json:"isRegexPattern"`
}

type functionPulsar struct {
	// PulsarConfig is the name of a ConfigMap in the Function's Kubernetes namespace.
	PulsarConfig string `json:"pulsarConfig"`
}

// decodeFunction reads what scaling rests on and ignores every other field.
func decodeFunction(object map[string]any) (function, error) {
	var f function
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &f); err != nil {
		return function{}, fmt.Errorf("decoding Function: %w", err)
	}
	return f, nil
}

// target is what the Function's own fields say about scaling it, without its subscription.
func (f function) target(ref v1alpha1.CrossVersionObjectReference) policy.Target {
	target := policy.Target{
		Ref:           ref,
		Replicas:      f.Spec.Replicas,
		OwnAutoscaler: f.Spec.MaxReplicas != nil,
		Unmanaged:     f.Metadata.Annotations[annotationManaged] == "false",
	}
	for _, owner := range f.Metadata.OwnerReferences {
		if owner.Controller != nil && *owner.Controller && owner.Kind == kindFunctionMesh {
			target.MeshOwner = owner.Name
		}
	}
	return target
}

// subscriptionName is the subscription that the Function's replicas share.
//
// Source: Pulsar's InstanceUtils.getDefaultSubscriptionName: tenant/namespace/name of the Pulsar function. The defaults
// are those of Function Mesh's webhook, which not every installation runs.
func (f function) subscriptionName() string {
	if f.Spec.SubscriptionName != "" {
		return f.Spec.SubscriptionName
	}
	return withDefault(f.Spec.Tenant, "public") + "/" + withDefault(f.Spec.Namespace, "default") + "/" +
		withDefault(f.Spec.Name, f.Metadata.Name)
}

func withDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// topics are the input topics, each once and in order, or why they cannot be told and what to do about it.
//
// Source: Function Mesh's generateInputSpec: the union of topics, topicPattern, customSerdeSources, customSchemaSources
// and sourceSpecs; its Go runtime is given topics[0] and nothing else.
func (f function) topics() (topics []string, invalid string) {
	const patterns = "spec.input.topicPattern is not supported yet: list the topics in spec.input.topics"
	input := f.Spec.Input
	if f.Spec.Golang != nil {
		if len(input.Topics) == 0 || input.Topics[0] == "" {
			return nil, "a Go function consumes the first of spec.input.topics only, and there is none: set spec.input.topics"
		}
		return input.Topics[:1], ""
	}
	if input.TopicPattern != "" {
		return nil, patterns
	}
	topics = slices.Clone(input.Topics)
	for topic := range input.CustomSerdeSources {
		topics = append(topics, topic)
	}
	for topic := range input.CustomSchemaSources {
		topics = append(topics, topic)
	}
	for topic, source := range input.SourceSpecs {
		if source.IsRegexPattern {
			return nil, patterns
		}
		topics = append(topics, topic)
	}
	topics = slices.DeleteFunc(topics, func(topic string) bool { return topic == "" })
	if len(topics) == 0 {
		return nil, "the Function has no input topics, so it has no backlog: list them in spec.input.topics"
	}
	slices.Sort(topics)
	return slices.Compact(topics), ""
}
