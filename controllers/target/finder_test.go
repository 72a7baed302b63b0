// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestAWorkloadNeedsInstanceMetrics(t *testing.T) {
	for mode, want := range map[InstanceMetrics]backlog.Workload{
		PodInstanceMetrics: backlog.Object{Kind: "Function", Namespace: "media", Name: "resize"},
		NoInstanceMetrics:  nil,
	} {
		t.Run(string(mode), func(t *testing.T) {
			targets := newTestTargets(t, []client.Object{fixture.Function(), fixture.ConfigMap()},
				func(c *Config) { c.InstanceMetrics = mode })
			found, err := targets.Finder.Find(t.Context(), fixture.Namespace, fixture.Policy().Spec)
			require.NoError(t, err)
			require.Equal(t, want, found.Subscription.Workload)
		})
	}
}
