// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestTheWorkloadOfAWorkerFunction(t *testing.T) {
	targets := newTestTargets(t, nil, func(c *Config) {
		c.Worker, c.Consumers = fixture.NewWorker(), func(backlog.Subscription) (int, error) { return 3, nil }
	})
	p := fixture.WorkerPolicy()
	p.Spec.PulsarFunctionRef.WorkerURL = "http://Worker:6750/"
	found, err := targets.Finder.Find(t.Context(), fixture.Namespace, p.Spec)
	require.NoError(t, err)
	require.Equal(t, function.Component{
		Cluster: backlog.Cluster{AdminURL: "http://pulsar:8080"}, WorkerURL: "http://worker:6750",
		Kind: function.KindFunction, Tenant: "public", Namespace: "default", Name: "resize",
	}, found.Subscription.Workload)
	require.True(t, found.NeverZero)
}

func TestInvalidWorkerCredentialsAreRefused(t *testing.T) {
	_, err := New(Config{
		Workloads: newTestClient(t), Installed: func(string) bool { return true }, Objects: newTestClient(t),
		FunctionCredentials: UseFunctionCredentials, WorkerCredentials: "own", Now: time.Now,
	})
	require.EqualError(t, err, `targets: WorkerCredentials is "own", must be Policy or Own`)
}

func TestUpdateCountsForTheWholeInterval(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	targets := newTestTargets(t, nil, func(c *Config) {
		c.Worker, c.Consumers = fixture.NewWorker(), func(backlog.Subscription) (int, error) { return 3, nil }
		c.WorkerUpdateInterval, c.Now = time.Hour, func() time.Time { return now }
	})
	component := function.Component{Cluster: fixture.Cluster(), Name: "resize"}
	began := 0
	update := func() {
		targets.Workers.Update(t.Context(), fixture.Key(), component, func(context.Context) error {
			began++
			return nil
		}, func(err error) { require.NoError(t, err) })
	}
	update()
	require.Equal(t, 1, began)
	now = now.Add(59 * time.Minute)
	targets.Forget(now)
	update()
	require.Equal(t, 1, began)
	now = now.Add(time.Minute)
	update()
	require.Equal(t, 2, began)
}
