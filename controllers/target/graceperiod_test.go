// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

func TestTheCacheKeepsTheGracePeriod(t *testing.T) {
	for name, test := range map[string]struct {
		template map[string]any
		want     int64
	}{
		"another than the default": {podSpecOf(map[string]any{"terminationGracePeriodSeconds": int64(5)}), 5},
		"none":                     {podSpecOf(map[string]any{"terminationGracePeriodSeconds": int64(0)}), 0},
		"the default":              {podSpecOf(map[string]any{"terminationGracePeriodSeconds": int64(30)}), 30},
		"absent":                   {podSpecOf(map[string]any{}), 30},
	} {
		for _, kind := range []string{cluster.KindDeployment, cluster.KindStatefulSet} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				object := cluster.NewUnstructured(kind)
				object.SetName("orders-sink") // like a StatefulSet of Function Mesh, which has a controller
				object.Object["spec"] = map[string]any{"replicas": int64(2), "template": test.template}
				require.Equal(t, test.want, Decode(object).pods.grace)
			})
		}
	}
}

func podSpecOf(spec map[string]any) map[string]any {
	spec["containers"] = []any{map[string]any{"name": "app"}}
	return map[string]any{"spec": spec}
}
