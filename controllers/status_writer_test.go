// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// A client decodes an API server's answer into the numbers that an object has. A status has those of cached objects.
func TestAnAnswerChangesNoNumberOfTheCache(t *testing.T) {
	scheme, err := informer.Scheme()
	require.NoError(t, err)
	answer := func(_ context.Context, _ client.Client, _ string, object client.Object, _ client.Patch,
		_ ...client.SubResourcePatchOption,
	) error {
		*object.(*v1alpha1.AutoscalingPolicy).Status.SpecReplicas = 9
		return nil
	}
	w := &statusWriter{
		client:  server(scheme).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: answer}).Build(),
		metrics: newControllerMetrics(prometheus.NewRegistry()),
	}
	cached := int32(2)
	written, err := w.patch(t.Context(), fixture.Policy(), v1alpha1.AutoscalingPolicyStatus{SpecReplicas: &cached})
	require.NoError(t, err)
	require.Equal(t, int32(9), *written.Status.SpecReplicas)
	require.Equal(t, int32(2), cached)
}
