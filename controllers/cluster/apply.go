// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Apply applies an object as our field manager, and returns the API server's answer. Our fields are all that encoding
// does not omit, without the status.
func Apply(ctx context.Context, writer client.Client, wanted any, options ...client.ApplyOption) (
	*unstructured.Unstructured, error,
) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", wanted, err)
	}
	delete(fields, "status")
	applied := &unstructured.Unstructured{Object: fields}
	return applied, writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
		append(options, client.FieldOwner(plan.FieldManager))...)
}
