// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package crd has the CustomResourceDefinitions, for programs that check objects as the API server does.
//
// Layer 0. The YAML files are generated (make generate); this package only embeds them.
package crd

import _ "embed" // AutoscalingPolicies

// AutoscalingPolicies is the CustomResourceDefinition of AutoscalingPolicy.
//
//go:embed pulsar-autoscaler.io_autoscalingpolicies.yaml
var AutoscalingPolicies []byte
