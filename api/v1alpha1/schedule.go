// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Schedule limits the replicas at some times: from each time of start until the next time of end.
//
// +kubebuilder:validation:XValidation:rule="has(self.minReplicas) || has(self.maxReplicas)",message="minReplicas or maxReplicas must be set, or both"
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be larger than maxReplicas"
type Schedule struct {
	// name of the schedule, which status and events show: a lower case word such as business-hours, of up to 63
	// characters. Required.
	// +required
	Name ScheduleName `json:"name"`

	// timeZone of start and end, by its name in the IANA database, such as Europe/Berlin. Where clocks are set forward or
	// back, start and end follow what the clock shows. Default: Etc/UTC.
	// +optional
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_+/-]+$') && self != 'Local'",message="timeZone must be a name of the IANA database, such as Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`

	// start is a cron expression of five fields: minute, hour, day of month, month, day of week. "0 8 * * 1-5" is 8:00
	// from Monday to Friday. Required.
	// +required
	Start CronExpression `json:"start"`

	// end is a cron expression like start. Required.
	// +required
	End CronExpression `json:"end"`

	// minReplicas raises the lower limit of replicas: from 0 to 10000, and at most maxReplicas of the policy. Default: no
	// change.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas reduces the upper limit of replicas: from 1 to 10000, and at least minReplicas of the policy. Default:
	// no change.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
}

// ScheduleName is the name of a schedule.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be lower case letters, digits and hyphens, such as business-hours"
type ScheduleName string

// CronExpression is a cron expression of five fields.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z*/,?-]+( +[0-9A-Za-z*/,?-]+){4}$')",message="must be a cron expression of five fields, such as 0 8 * * 1-5 for 8:00 from Monday to Friday"
type CronExpression string
