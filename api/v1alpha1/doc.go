// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API that users write: the AutoscalingPolicy, which scales one Pulsar Function so that
// messages meet a latency objective, and the AutoscalingPolicySet, which creates policies for many.
//
// Layer 0: it uses the standard library and apimachinery. It never decides, reads or writes anything. Its markers
// contain the validation in CEL, and the CRD in deploy/crd is generated from them.
//
// +kubebuilder:object:generate=true
// +groupName=pulsar-autoscaler.io
package v1alpha1
