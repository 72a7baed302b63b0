// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API users write: the AutoscalingPolicy, which scales one Pulsar Function so that messages
// meet a latency objective, and the AutoscalingPolicySet, which makes policies for many.
//
// Floor 0: it knows the standard library and apimachinery. It never decides, reads or writes anything; validation
// that fits CEL lives in its markers, and the CRD in deploy/crd is generated from them.
//
// +kubebuilder:object:generate=true
// +groupName=pulsar-autoscaler.io
package v1alpha1
