// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Scaler is how KEDA reaches our external scaler. The zero value is none.
type Scaler struct {
	// Address is host:port.
	Address string
	// TLS says that the scaler speaks it.
	TLS bool
	// Authentication is the name of a ClusterTriggerAuthentication with the CA, or with a client certificate; empty for
	// none.
	Authentication string
}

// ScaledObjectConfiguration is what we apply of KEDA's ScaledObject, and no more: other fields are their writers'.
//
// Source: KEDA 2.21, apis/keda/v1alpha1.
type ScaledObjectConfiguration struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   ScaledObjectOwned `json:"metadata"`
	Spec       ScaledObjectSpec  `json:"spec"`
}

// ScaledObjectOwned is the part of the metadata that is ours.
type ScaledObjectOwned struct {
	Name            string                  `json:"name"`
	Namespace       string                  `json:"namespace"`
	Labels          map[string]string       `json:"labels"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

// ScaledObjectSpec has the fields that are ours.
type ScaledObjectSpec struct {
	ScaleTargetRef ScaledObjectTarget `json:"scaleTargetRef"`
	// Seconds; nil where minReplicaCount is not 0: KEDA warns of them then, for nothing follows from them.
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

// ScaledObjectTarget is what KEDA scales.
type ScaledObjectTarget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// ScaledObjectAdvanced is how KEDA makes its HorizontalPodAutoscaler, and whether deleting the ScaledObject moves
// replicas.
type ScaledObjectAdvanced struct {
	// RestoreToOriginalReplicaCount is written as false, which KEDA leaves out where it writes the object.
	RestoreToOriginalReplicaCount bool                   `json:"restoreToOriginalReplicaCount"`
	HorizontalPodAutoscalerConfig ScaledObjectAutoscaler `json:"horizontalPodAutoscalerConfig"`
}

// ScaledObjectAutoscaler is the HorizontalPodAutoscaler that KEDA makes.
type ScaledObjectAutoscaler struct {
	Name     string                                         `json:"name"`
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
}

// ScaledObjectFallback is what KEDA does without an answer of the scaler.
type ScaledObjectFallback struct {
	FailureThreshold int32  `json:"failureThreshold"`
	Replicas         int32  `json:"replicas"`
	Behavior         string `json:"behavior"`
}

// ScaledObjectTrigger has all fields of a trigger: the list of triggers is one field, and ours as a whole.
type ScaledObjectTrigger struct {
	Type              string                      `json:"type"`
	Name              string                      `json:"name,omitempty"`
	UseCachedMetrics  bool                        `json:"useCachedMetrics,omitempty"`
	Metadata          map[string]string           `json:"metadata"`
	AuthenticationRef *ScaledObjectAuthentication `json:"authenticationRef,omitempty"`
	MetricType        string                      `json:"metricType,omitempty"`
}

// ScaledObjectAuthentication names what KEDA shows the scaler.
type ScaledObjectAuthentication struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
}

// LiveScaledObject is a ScaledObject as it is.
type LiveScaledObject struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec   ScaledObjectSpec   `json:"spec"`
	Status ScaledObjectStatus `json:"status"`
	// Paused and its like are what annotations tell KEDA to leave alone: everything, fewer replicas, more replicas.
	Paused, PausedIn, PausedOut bool `json:"-"`
}

// ScaledObjectStatus is what KEDA says. Its conditions have no times.
type ScaledObjectStatus struct {
	Conditions []metav1.Condition `json:"conditions"`
}

// How KEDA is told to ask, and what to do when it gets no answer.
const (
	kedaAPIVersion = "keda.sh/v1alpha1"
	// kedaPollingSeconds is KEDA's default. It asks for replicas from zero on; the scaler tells it of them before.
	kedaPollingSeconds = 30
	// leastKEDACooldown is for how long KEDA leaves the last replica that the adapter did not take, at least: it is a net.
	// The adapter takes it at once when it is decided; KEDA would on one wrong "inactive" too, such as it was seen to make
	// of an error.
	leastKEDACooldown = time.Minute
	// kedaFailures is after how many answers in a row that fail KEDA keeps the replicas by a number of its own.
	kedaFailures = 3
	// fallbackCurrent has that be the present number.
	fallbackCurrent = "currentReplicas"
)

// ScaledObject is what we apply for a policy of actuator KEDA: one trigger, which asks our scaler for the decision, and
// a HorizontalPodAutoscaler of KEDA's that sets exactly that, as HorizontalPodAutoscaler says. Deleting it moves no
// replica.
func ScaledObject(p *v1alpha1.AutoscalingPolicy, target *Target, scaler Scaler) *ScaledObjectConfiguration {
	name, ref := AutoscalerName(p.Name), target.Ref
	least := policy.MinReplicas(p.Spec)
	if target.NeverZero {
		least = max(1, least)
	}
	spec := ScaledObjectSpec{
		ScaleTargetRef:  ScaledObjectTarget{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name},
		MinReplicaCount: least, MaxReplicaCount: p.Spec.MaxReplicas,
		Advanced: ScaledObjectAdvanced{HorizontalPodAutoscalerConfig: ScaledObjectAutoscaler{
			Name:     name,
			Behavior: unfilteredBehavior(),
		}},
		Fallback: ScaledObjectFallback{FailureThreshold: kedaFailures, Replicas: max(1, least), Behavior: fallbackCurrent},
		Triggers: []ScaledObjectTrigger{trigger(p, scaler)},
	}
	if least == 0 {
		seconds := int32(max(leastKEDACooldown, policy.Cooldown(p.Spec)) / time.Second) //nolint:gosec // at most a day
		spec.PollingInterval, spec.CooldownPeriod, spec.InitialCooldownPeriod = new(
			int32(kedaPollingSeconds)), &seconds, &seconds
	}
	controller := true
	return &ScaledObjectConfiguration{
		APIVersion: kedaAPIVersion, Kind: kindScaledObject, Spec: spec,
		Metadata: ScaledObjectOwned{
			Name: name, Namespace: p.Namespace, Labels: ownLabels(p),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindAutoscalingPolicy, Name: p.Name, UID: p.UID,
				Controller: &controller,
			}},
		},
	}
}

// trigger that pushes: it wakes KEDA without a poll.
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

// unfilteredBehavior is that of HorizontalPodAutoscaler.
func unfilteredBehavior() *autoscalingv2.HorizontalPodAutoscalerBehavior {
	up, down := unfilteredRules(), unfilteredRules()
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &up, ScaleDown: &down}
}

// ScaledObjectIsCurrent says whether the live ScaledObject already is what we would apply. What we would leave out may
// be anything: applying without a field that is another's does not remove it.
func ScaledObjectIsCurrent(live *LiveScaledObject, wanted *ScaledObjectConfiguration) bool {
	if live == nil {
		return false
	}
	for key, value := range wanted.Metadata.Labels {
		if live.Labels[key] != value {
			return false
		}
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

// Fields is the configuration as an API server is sent it.
func (s *ScaledObjectConfiguration) Fields() (map[string]any, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the ScaledObject: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("decoding the ScaledObject: %w", err)
	}
	return fields, nil
}
