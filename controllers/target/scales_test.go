// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// slowDiscovery answers only when the request ends.
type slowDiscovery struct{}

func (slowDiscovery) ServerResourcesForGroupVersionWithContext(ctx context.Context, _ string) (
	*metav1.APIResourceList, error,
) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestDiscoveryOfAKindEndsWithItsContext(t *testing.T) {
	kind := appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	mapper.Add(kind, meta.RESTScopeNamespace)
	s := scales{client: fake.NewClientBuilder().WithRESTMapper(mapper).Build(), resources: slowDiscovery{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.resource(ctx, kind)
	require.ErrorIs(t, err, context.Canceled)
}
