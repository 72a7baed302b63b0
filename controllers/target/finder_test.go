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

func TestTheWorkloadOfAFunction(t *testing.T) {
	targets := newTestTargets(t, []client.Object{fixture.Function(), fixture.ConfigMap()})
	found, err := targets.Finder.Find(t.Context(), fixture.Namespace, fixture.Policy().Spec)
	require.NoError(t, err)
	require.Equal(t, backlog.Object{Kind: "Function", Namespace: "media", Name: "resize"}, found.Subscription.Workload)
}
