// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Scaler is how KEDA reaches the external scaler. The zero value is none.
type Scaler struct {
	// Address is host:port.
	Address string
	// TLS is true if the scaler serves TLS.
	TLS bool
	// Authentication is the name of a ClusterTriggerAuthentication with the CA or a client certificate; empty for none.
	Authentication string
}

// ScaledObjectConfiguration has the fields of KEDA's ScaledObject that the controller applies. Other writers own the
// rest.
//
// Source: KEDA 2.21, apis/keda/v1alpha1.
type ScaledObjectConfiguration struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       ScaledObjectSpec  `json:"spec"`
}

// ScaledObjectSpec has the fields that are ours.
type ScaledObjectSpec struct {
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`
	// Seconds; nil if minReplicaCount is not 0, since KEDA then warns that they have no effect.
	PollingInterval       *int32 `json:"pollingInterval,omitempty"`
	CooldownPeriod        *int32 `json:"cooldownPeriod,omitempty"`
	InitialCooldownPeriod *int32 `json:"initialCooldownPeriod,omitempty"`
	// Replicas.
	MinReplicaCount int32                 `json:"minReplicaCount"`
	MaxReplicaCount int32                 `json:"maxReplicaCount"`
	Advanced        ScaledObjectAdvanced  `json:"advanced"`
	Fallback        ScaledObjectFallback  `json:"fallback"`
	Triggers        []ScaledObjectTrigger `json:"triggers"`
}

// ScaledObjectAdvanced configures KEDA's HorizontalPodAutoscaler, and whether deleting the ScaledObject changes
// replicas.
type ScaledObjectAdvanced struct {
	// RestoreToOriginalReplicaCount is written as false; KEDA omits it when it writes the object.
	RestoreToOriginalReplicaCount bool                   `json:"restoreToOriginalReplicaCount"`
	HorizontalPodAutoscalerConfig ScaledObjectAutoscaler `json:"horizontalPodAutoscalerConfig"`
}

// ScaledObjectAutoscaler is the HorizontalPodAutoscaler that KEDA creates.
type ScaledObjectAutoscaler struct {
	Name     string                                         `json:"name"`
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
}

// ScaledObjectFallback is what KEDA does without an answer from the scaler.
type ScaledObjectFallback struct {
	FailureThreshold int32  `json:"failureThreshold"`
	Replicas         int32  `json:"replicas"`
	Behavior         string `json:"behavior"`
}

// ScaledObjectTrigger has all fields of a trigger, since one field manager owns the whole list.
type ScaledObjectTrigger struct {
	Type              string                      `json:"type"`
	Name              string                      `json:"name,omitempty"`
	UseCachedMetrics  bool                        `json:"useCachedMetrics,omitempty"`
	Metadata          map[string]string           `json:"metadata"`
	AuthenticationRef *ScaledObjectAuthentication `json:"authenticationRef,omitempty"`
	MetricType        string                      `json:"metricType,omitempty"`
}

// ScaledObjectAuthentication names KEDA's credentials for the scaler.
type ScaledObjectAuthentication struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
}

// Annotations by which KEDA leaves the target of a ScaledObject alone, or a change in one direction, or keeps it awake.
const (
	AnnotationPaused    = "autoscaling.keda.sh/paused"
	AnnotationPausedAt  = "autoscaling.keda.sh/paused-replicas"
	AnnotationPausedIn  = "autoscaling.keda.sh/paused-scale-in"
	AnnotationPausedOut = "autoscaling.keda.sh/paused-scale-out"
	AnnotationForced    = "autoscaling.keda.sh/force-activation"
)

// IsSet reads an annotation as KEDA does: a value that is no boolean means yes.
func IsSet(annotations map[string]string, key string) bool {
	text, found := annotations[key]
	set, err := strconv.ParseBool(text)
	return found && (set || err != nil)
}

// IsPaused reports whether KEDA leaves the target of a ScaledObject with these annotations alone.
//
// Source: KEDA 2.21, apis/keda/v1alpha1, NeedToBePausedByAnnotation.
func IsPaused(annotations map[string]string) bool {
	_, at := annotations[AnnotationPausedAt]
	return at || IsSet(annotations, AnnotationPaused)
}

// LiveScaledObject is a ScaledObject of the cluster.
type LiveScaledObject struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec   ScaledObjectSpec   `json:"spec"`
	Status ScaledObjectStatus `json:"status"`
	// Paused, PausedIn and PausedOut are annotations that make KEDA skip every change, scale-in or scale-out.
	Paused, PausedIn, PausedOut bool `json:"-"`
}

// ScaledObjectStatus is KEDA's report. Its conditions have no times.
type ScaledObjectStatus struct {
	Conditions []metav1.Condition `json:"conditions"`
}

// Forbids reports whether an annotation of the user makes KEDA skip the change.
func (l *LiveScaledObject) Forbids(current, decided int32) bool {
	return l != nil && (l.Paused || (l.PausedIn && decided < current) || (l.PausedOut && decided > current))
}

// How KEDA polls, and what it does without an answer.
const (
	kedaAPIVersion = "keda.sh/v1alpha1"
	// kedaPollingSeconds is KEDA's default. KEDA polls at zero replicas; the scaler pushes earlier.
	kedaPollingSeconds = 30
	// minKEDACooldown is the minimum time before KEDA itself removes the last replica. The adapter removes it as soon as
	// it decides so. KEDA might remove it on a single wrong "inactive", which it was seen to derive from an error.
	minKEDACooldown = time.Minute
	// kedaFailures is the number of consecutive failures after which KEDA falls back.
	kedaFailures = 3
	// labelKEDAName is the label by which KEDA finds a ScaledObject. Without it KEDA adds it in a separate request.
	labelKEDAName = "scaledobject.keda.sh/name"
	// fallbackCurrent makes KEDA hold the current replicas in this case.
	fallbackCurrent = "currentReplicas"
)

// ScaledObject is the one to apply for actuator KEDA: one trigger, which reads the decision from the external scaler,
// and an HPA that sets exactly this number, as HorizontalPodAutoscaler does. Deleting it changes no replicas.
func ScaledObject(p *v1alpha1.AutoscalingPolicy, target *Target, scaler Scaler) *ScaledObjectConfiguration {
	name := AutoscalerName(p.Name)
	least := policy.MinReplicas(p.Spec)
	if target.NeverZero {
		least = max(1, least)
	}
	spec := ScaledObjectSpec{
		ScaleTargetRef: scaledBy(target.Ref), MinReplicaCount: least, MaxReplicaCount: p.Spec.MaxReplicas,
		Advanced: ScaledObjectAdvanced{HorizontalPodAutoscalerConfig: ScaledObjectAutoscaler{
			Name:     name,
			Behavior: followingBehavior(p.Spec),
		}},
		Fallback: ScaledObjectFallback{FailureThreshold: kedaFailures, Replicas: max(1, least), Behavior: fallbackCurrent},
		Triggers: []ScaledObjectTrigger{trigger(p, scaler)},
	}
	if least == 0 {
		seconds := int32(max(minKEDACooldown, policy.Cooldown(p.Spec)) / time.Second) //nolint:gosec // at most a day
		spec.PollingInterval, spec.CooldownPeriod, spec.InitialCooldownPeriod = new(
			int32(kedaPollingSeconds)), &seconds, &seconds
	}
	labels := ownLabels(p)
	labels[labelKEDAName] = name
	return &ScaledObjectConfiguration{
		APIVersion: kedaAPIVersion, Kind: KindScaledObject, Spec: spec,
		Metadata: metav1.ObjectMeta{
			Name: name, Namespace: p.Namespace, Labels: labels,
			OwnerReferences: ownerReferences(p),
		},
	}
}

// trigger of type push wakes KEDA without a poll.
func trigger(p *v1alpha1.AutoscalingPolicy, scaler Scaler) ScaledObjectTrigger {
	t := ScaledObjectTrigger{
		Type:     "external-push",
		Metadata: map[string]string{"scalerAddress": scaler.Address, "policy": p.Name},
	}
	if scaler.TLS {
		t.Metadata["enableTLS"] = "true"
	}
	if scaler.Authentication != "" {
		t.AuthenticationRef = &ScaledObjectAuthentication{Name: scaler.Authentication, Kind: "ClusterTriggerAuthentication"}
	}
	return t
}

// ScaledObjectIsCurrent reports whether applying would change nothing. Fields that we leave out may have any value: an
// apply does not remove another manager's fields.
func ScaledObjectIsCurrent(live *LiveScaledObject, wanted *ScaledObjectConfiguration) bool {
	if live == nil || !HasAll(live.Labels, wanted.Metadata.Labels) {
		return false
	}
	is, want := live.Spec, wanted.Spec
	for _, optional := range []struct{ is, want **int32 }{
		{&is.PollingInterval, &want.PollingInterval},
		{&is.CooldownPeriod, &want.CooldownPeriod},
		{&is.InitialCooldownPeriod, &want.InitialCooldownPeriod},
	} {
		if *optional.want == nil {
			*optional.is = nil
		}
	}
	return equality.Semantic.DeepEqual(is, want)
}
