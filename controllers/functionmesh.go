// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// workload is the part of a Function, Sink or Source that scaling rests on; all its other fields are Function Mesh's
// business.
type workload struct {
	// Kind is one of workloadKinds.
	Kind     string           `json:"kind"`
	Metadata workloadMetadata `json:"metadata"`
	Spec     workloadSpec     `json:"spec"`
	Status   workloadStatus   `json:"status"`
}

// workloadStatus is what is kept of it.
type workloadStatus struct {
	// PendingChange is set while a rollout is paused: slim leaves nothing of its text.
	PendingChange string `json:"pendingChange"`
}

type workloadMetadata struct {
	Name            string                  `json:"name"`
	Namespace       string                  `json:"namespace"`
	Annotations     map[string]string       `json:"annotations"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

type workloadSpec struct {
	// Tenant, Namespace (Pulsar's) and Name are filled by Function Mesh's webhook where there is one.
	Tenant      string `json:"tenant"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Replicas    *int32 `json:"replicas"`
	MaxReplicas *int32 `json:"maxReplicas"`

	Input               workloadInput `json:"input"`
	SubscriptionName    string        `json:"subscriptionName"`
	ProcessingGuarantee string        `json:"processingGuarantee"`
	RetainOrdering      bool          `json:"retainOrdering"`
	RetainKeyOrdering   bool          `json:"retainKeyOrdering"`
	WindowConfig        *windowConfig `json:"windowConfig"`
	// SourceConfig of a Function replaces its input; that of a Source is the connector's own.
	SourceConfig map[string]any `json:"sourceConfig"`
	// BatchSourceConfig is set for Sources that discover tasks and share them through a topic.
	BatchSourceConfig *struct{} `json:"batchSourceConfig"`

	Pulsar workloadPulsar `json:"pulsar"`
	// Golang, Python and GenericRuntime are set for functions of those runtimes; the others are Java.
	Golang         *struct{} `json:"golang"`
	Python         *struct{} `json:"python"`
	GenericRuntime *struct{} `json:"genericRuntime"`

	// SecretsMap and ShowPreciseParallelism end in the pod template.
	SecretsMap             map[string]struct{} `json:"secretsMap"`
	ShowPreciseParallelism bool                `json:"showPreciseParallelism"`
	Pod                    workloadPod         `json:"pod"`
}

// workloadPod is what is kept of spec.pod: slim knows its fields.
type workloadPod struct {
	// Annotations of the pods, of which slim keeps annotationRestartedAt.
	Annotations map[string]string `json:"annotations"`
	VPA         *verticalPolicy   `json:"vpa"`
}

// verticalPolicy is that of a VerticalPodAutoscaler.
type verticalPolicy struct {
	UpdatePolicy struct {
		UpdateMode string `json:"updateMode"`
	} `json:"updatePolicy"`
}

type workloadInput struct {
	Topics              []string                  `json:"topics"`
	TopicPattern        string                    `json:"topicPattern"`
	CustomSerdeSources  map[string]string         `json:"customSerdeSources"`
	CustomSchemaSources map[string]string         `json:"customSchemaSources"`
	SourceSpecs         map[string]workloadSource `json:"sourceSpecs"`
}

type workloadSource struct {
	IsRegexPattern     bool              `json:"isRegexPattern"`
	ConsumerProperties map[string]string `json:"consumerProperties"`
}

type windowConfig struct {
	ProcessingGuarantees string `json:"processingGuarantees"`
}

// Values of spec.processingGuarantee.
const (
	guaranteeEffectivelyOnce = "effectively_once"
	guaranteeManual          = "manual"
)

// decodeWorkload reads what scaling rests on and ignores every other field.
func decodeWorkload(kind string, object map[string]any) (workload, error) {
	var w workload
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &w); err != nil {
		return workload{}, fmt.Errorf("decoding %s: %w", kind, err)
	}
	w.Kind = kind
	return w, nil
}

// target is what the object's own fields say about scaling it, without its subscription.
func (w workload) target(ref v1alpha1.ScaleTargetRef) policy.Target {
	target := policy.Target{
		Ref:               ref,
		Scaling:           policy.BySubresource,
		Scaled:            scaledBy(ref),
		Replicas:          w.Spec.Replicas,
		OwnAutoscaler:     w.Spec.MaxReplicas != nil,
		MaxReplicas:       w.Spec.MaxReplicas,
		NeverZero:         w.Kind == kindSource,
		Unmanaged:         w.Metadata.Annotations[annotationManaged] == "false",
		Component:         w.component(),
		NeverAcknowledges: w.neverAcknowledges(),
	}
	target.MeshOwner = meshOwner(w.Metadata.OwnerReferences)
	return target
}

// meshOwner is the FunctionMesh that controls an object; empty when there is none.
func meshOwner(owners []metav1.OwnerReference) string {
	for _, owner := range owners {
		if owner.Controller != nil && *owner.Controller && owner.Kind == kindFunctionMesh {
			return owner.Name
		}
	}
	return ""
}

// scaledBy are the objects whose replicas are those of a Function, Sink or Source: itself and its StatefulSet.
func scaledBy(ref v1alpha1.ScaleTargetRef) []v1alpha1.ScaleTargetRef {
	gvk := watchedKind(kindStatefulSet)
	return []v1alpha1.ScaleTargetRef{
		ref, {APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: policy.FunctionMeshName(ref)},
	}
}

// component is what Pulsar calls the function, tenant/namespace/name. The defaults are those of Function Mesh's
// webhook, which not every installation runs.
func (w workload) component() string {
	return withDefault(w.Spec.Tenant, "public") + "/" + withDefault(w.Spec.Namespace, "default") + "/" +
		withDefault(w.Spec.Name, w.Metadata.Name)
}

// subscriptionName is the subscription that the replicas share, unless consumer properties say otherwise.
//
// Source: Pulsar's InstanceUtils.getDefaultSubscriptionName: tenant/namespace/name of the Pulsar function; for batch
// sources its BatchSourceExecutor.
func (w workload) subscriptionName() string {
	if w.Kind == kindSource {
		return "BatchSourceExecutor-" + w.component()
	}
	return withDefault(w.Spec.SubscriptionName, w.component())
}

// subscriptionType is how the replicas subscribe, unless consumer properties say otherwise.
//
// Source: Function Mesh's getSubscriptionType (controllers/spec/utils.go); what it gives to Go instances has neither
// the guarantee nor the ordering, so they are always Shared.
func (w workload) subscriptionType() backlog.SubscriptionType {
	switch s := w.Spec; {
	case s.Golang != nil || w.Kind == kindSource:
		return backlog.Shared
	case s.RetainOrdering || s.ProcessingGuarantee == guaranteeEffectivelyOnce:
		return backlog.Failover
	case s.RetainKeyOrdering:
		return backlog.KeyShared
	default:
		return backlog.Shared
	}
}

// neverAcknowledges says that a window function leaves acknowledging to user code that cannot do it.
//
// Source: Pulsar's WindowFunctionExecutor and JavaInstanceRunnable.handleResult: with MANUAL outside, only the window's
// own guarantee makes it acknowledge.
func (w workload) neverAcknowledges() bool {
	return w.Spec.WindowConfig != nil && w.Spec.ProcessingGuarantee == guaranteeManual &&
		w.Spec.WindowConfig.ProcessingGuarantees == ""
}

func withDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
