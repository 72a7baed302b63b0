// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func (s *scene) followDeployment(t *testing.T, w *walker) {
	f := s.TestFunction(t, stage.FunctionConfig{Name: "billing", Deployment: true, ServiceTime: serviceTime})
	endLoad := f.Load(t, load.Constant(rate))
	s.follow(t, w, walk{
		page: "deployment.md",
		names: []string{
			"[shop/orders/new, shop/orders/changed]", "[public/default/billing-in]",
			"    name: billing\n", "    name: billing-consumers\n", "shop", stage.Namespace,
		},
		after: map[string]func(t *testing.T, output string){
			"3. The policy": func(t *testing.T, output string) {
				require.Regexp(t, `(?s)condition met.*billing .*Auto`, output)
				s.awaitReplicas(t, f, leastReplicas, maxReplicas)
			},
			"4. Check what it found": func(t *testing.T, output string) {
				require.Regexp(t, `Status: +True\n +Type: +SubscriptionVerified`, output)
				endLoad()
			},
		},
	})
	replicas, err := f.Replicas(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(2), replicas.Spec, "what the last section sets")
}

func (s *scene) followKEDA(t *testing.T, w *walker) {
	operator := s.startKEDA(t)
	f := s.addFunction(t, "resize", serviceTime)
	endLoad := f.Load(t, load.Constant(rate))
	object := s.ScaledObject(plan.AutoscalerName(f.Name))
	s.follow(t, w, walk{
		page:  "keda.md",
		names: []string{"media", stage.Namespace},
		after: map[string]func(t *testing.T, output string){
			"3. A policy with actuator KEDA": func(t *testing.T, output string) {
				require.Contains(t, output, "scaledobject.keda.sh/"+object.Name)
				s.awaitReplicas(t, f, leastReplicas, maxReplicas)
				endLoad()
			},
		},
	})
	found, err := object.Exists(t.Context())
	require.NoError(t, err)
	require.False(t, found, "the ScaledObject is deleted with the policy")
	s.removeKEDA(t, operator)
}
