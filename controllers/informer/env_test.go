// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// testEnv is a fake API server, a store without a poller, and a manual clock.
type testEnv struct {
	t       *testing.T
	client  client.Client
	store   *backlog.Store
	targets *target.Targets
	worker  *fixture.Worker
	// configure changes how the next process finds targets; nil for the default.
	configure func(*target.Config)
	installed bool
	now       time.Time
}

// newTestEnv has the objects, and a function worker unless that is nil.
func newTestEnv(t *testing.T, worker *fixture.Worker, objects ...client.Object) *testEnv {
	t.Helper()
	scheme, err := Scheme()
	require.NoError(t, err)
	env := &testEnv{
		t: t, worker: worker, installed: true, now: time.Unix(1_800_000_000, 0),
		client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithIndex(&v1alpha1.AutoscalingPolicy{}, target.IndexScaleTarget, target.IndexPolicy).Build(),
	}
	env.store, err = backlog.NewStore(10*time.Second, time.Minute, backlog.Bounds{})
	require.NoError(t, err)
	env.restart()
	return env
}

// restart replaces the process: its memory is lost.
func (env *testEnv) restart() {
	env.t.Helper()
	config := target.Config{
		Workloads: env.client, Installed: func(string) bool { return env.installed }, Objects: env.client,
		FunctionCredentials: target.UseFunctionCredentials, Now: env.clock,
	}
	if env.worker != nil {
		config.Worker, config.Consumers = env.worker, target.ConsumerCount(env.store, env.clock)
	}
	if env.configure != nil {
		env.configure(&config)
	}
	var err error
	env.targets, err = target.New(config)
	require.NoError(env.t, err)
}

func (env *testEnv) clock() time.Time { return env.now }

func (env *testEnv) after(d time.Duration) { env.now = env.now.Add(d) }

// answer records a response of Pulsar: pending messages, and all messages published so far.
func (env *testEnv) answer(pending, published int64) {
	env.store.Record(
		backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic},
		fixture.Sample(env.now, pending, published),
	)
}
