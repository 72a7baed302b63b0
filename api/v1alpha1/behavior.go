// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Behavior limits how fast replicas change.
type Behavior struct {
	// scaleUp limits how fast replicas are added. Default: no limits.
	// +optional
	ScaleUp *ScaleUpRules `json:"scaleUp,omitempty"`
	// scaleDown limits how fast replicas are removed. Default: the defaults of its fields.
	// +optional
	ScaleDown *ScaleDownRules `json:"scaleDown,omitempty"`
}

// SelectPolicy is which of several policies limits a change; Disabled allows none.
type SelectPolicy string

// The values of selectPolicy.
const (
	// SelectMax is the policy that allows the largest change.
	SelectMax SelectPolicy = "Max"
	// SelectMin is the policy that allows the smallest change.
	SelectMin SelectPolicy = "Min"
	// SelectDisabled allows no change in this direction.
	SelectDisabled SelectPolicy = "Disabled"
)

// ScaleUpRules limit how fast replicas are added. They also limit scale-up from zero; minReplicas takes precedence.
type ScaleUpRules struct {
	// stabilizationWindowSeconds is the stabilization window of scale-up, in seconds, from 0 to 3600: replicas never go
	// above the smallest recommendation within it. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty"`

	// selectPolicy is which of the policies limits scale-up: Max for the one that allows most, Min for the one that allows
	// least. Disabled adds no replicas. Default: Max.
	// +optional
	// +kubebuilder:default=Max
	// +kubebuilder:validation:Enum=Max;Min;Disabled
	SelectPolicy SelectPolicy `json:"selectPolicy,omitempty"`

	// policies limit how many replicas are added within a period, from 1 to 4 of them. Default: none, which is no limit.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Policies []ScalingPolicy `json:"policies,omitempty"`
}

// ScalingPolicyType is the unit of a scaling policy.
//
// +kubebuilder:validation:Enum=Pods;Percent
type ScalingPolicyType string

// The types of scaling policies.
const (
	// PodsScalingPolicy is a number of replicas.
	PodsScalingPolicy ScalingPolicyType = "Pods"
	// PercentScalingPolicy is a percentage of the replicas.
	PercentScalingPolicy ScalingPolicyType = "Percent"
)

// ScalingPolicy limits a change within a period.
type ScalingPolicy struct {
	// type is the unit of value: Pods for replicas, Percent for percent of the smallest number of replicas within the
	// period. Required.
	// +required
	Type ScalingPolicyType `json:"type"`
	// value is how many replicas, or percent, may be added within the period, from 1 to 10000. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Value int32 `json:"value"`
	// periodSeconds is the period, in seconds, from 1 to 1800. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1800
	PeriodSeconds int32 `json:"periodSeconds"`
}

// ScaleDownRules limit how fast replicas are removed.
type ScaleDownRules struct {
	// selectPolicy is Max for no further limit, or Disabled to remove no replicas, also while the target is idle.
	// maxReplicas takes precedence. Default: Max.
	// +optional
	// +kubebuilder:default=Max
	// +kubebuilder:validation:Enum=Max;Disabled
	SelectPolicy SelectPolicy `json:"selectPolicy,omitempty"`

	// stabilizationWindowSeconds is the stabilization window of scale-down, in seconds, from 0 to 3600: replicas never go
	// below the largest recommendation within it. Default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty"`

	// cooldownPeriodSeconds is how long the target must be idle before it scales to zero, in seconds, from 0 to 86400.
	// Idle means that no message arrives, is processed or is in the backlog. It applies with minReplicas 0, as
	// cooldownPeriod of a ScaledObject. Default: 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownPeriodSeconds *int32 `json:"cooldownPeriodSeconds,omitempty"`
}
