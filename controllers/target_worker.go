// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// workerFunction finds what a function worker runs.
func (t *Targets) workerFunction(_ context.Context, _ string, _ v1alpha1.AutoscalingPolicySpec) (Found, error) {
	return Found{Unsupported: "functions of a function worker are not supported yet"}, nil
}
