// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

func TestTheCacheKeepsAGracePeriodThatIsNotTheDefault(t *testing.T) {
	for name, test := range map[string]struct {
		template map[string]any
		want     int64
		kept     bool
	}{
		"another than the default": {podSpecOf(map[string]any{"terminationGracePeriodSeconds": int64(5)}), 5, true},
		"none":                     {podSpecOf(map[string]any{"terminationGracePeriodSeconds": int64(0)}), 0, true},
		"the default":              {podSpecOf(map[string]any{"terminationGracePeriodSeconds": int64(30)}), 30, false},
		"absent":                   {podSpecOf(map[string]any{}), 30, false},
	} {
		for _, kind := range []string{cluster.KindDeployment, cluster.KindStatefulSet} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				object := cluster.NewUnstructured(kind)
				object.SetName("orders-sink") // like a StatefulSet of Function Mesh, which has a controller
				object.Object["spec"] = map[string]any{"replicas": int64(2), "template": test.template}
				kept, err := Transform(object)
				require.NoError(t, err)
				u, ok := kept.(*unstructured.Unstructured)
				require.True(t, ok)
				require.Equal(t, test.want, templateGracePeriod(u))
				_, found, err := unstructured.NestedMap(u.Object, "spec", "template")
				require.NoError(t, err)
				require.Equal(t, test.kept, found)
			})
		}
	}
}

func podSpecOf(spec map[string]any) map[string]any {
	spec["containers"] = []any{map[string]any{"name": "app"}}
	return map[string]any{"spec": spec}
}
