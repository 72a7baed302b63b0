// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTheMapperKnowsLeasesAlone(t *testing.T) {
	lease, pod := coordinationv1.SchemeGroupVersion.WithKind("Lease"), corev1.SchemeGroupVersion.WithKind("Pod")
	full := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{lease, pod} {
		full.Add(kind, meta.RESTScopeNamespace)
	}
	for name, tt := range map[string]struct {
		under    meta.RESTMapper
		kind     schema.GroupVersionKind
		versions []string
		known    bool
	}{
		"a Lease, before discovery": {meta.NewDefaultRESTMapper(nil), lease, []string{"v1"}, true},
		"a Lease":                   {full, lease, []string{"v1"}, true},
		"another version of it, before discovery":     {meta.NewDefaultRESTMapper(nil), lease, []string{"v2"}, false},
		"a Lease of any version, before discovery":    {meta.NewDefaultRESTMapper(nil), lease, nil, false},
		"another kind is looked up":                   {full, pod, []string{"v1"}, true},
		"another kind is looked up, before discovery": {meta.NewDefaultRESTMapper(nil), pod, []string{"v1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := leaseMapper{tt.under}.RESTMapping(tt.kind.GroupKind(), tt.versions...)
			if !tt.known {
				require.True(t, meta.IsNoMatchError(err), err)
				return
			}
			require.NoError(t, err)
			want, err := full.RESTMapping(tt.kind.GroupKind(), tt.versions...)
			require.NoError(t, err)
			require.Equal(t, want, found)
		})
	}
}
