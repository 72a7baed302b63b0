// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// newTestClient is an API server and a cache with the objects.
func newTestClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, corev1.AddToScheme(scheme))
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.AutoscalingPolicy{}, IndexScaleTarget, IndexPolicy)
	return builder.Build()
}

// newTestTargets finds targets among the objects. Each change edits the configuration.
func newTestTargets(t *testing.T, objects []client.Object, changes ...func(*Config)) *Targets {
	t.Helper()
	c := newTestClient(t, objects...)
	config := Config{
		Workloads: c, Installed: func(string) bool { return true }, Objects: c,
		FunctionCredentials: UseFunctionCredentials, Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
	}
	for _, change := range changes {
		change(&config)
	}
	targets, err := New(config)
	require.NoError(t, err)
	return targets
}
