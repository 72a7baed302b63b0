// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// meshComponent finds an entry of a FunctionMesh.
func (t *Targets) meshComponent(_ context.Context, _ string, _ v1alpha1.AutoscalingPolicySpec) (Found, error) {
	return Found{Unsupported: "components of a FunctionMesh are not supported yet"}, nil
}
