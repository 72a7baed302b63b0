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

// testReads is an API server, a store without a poller, and a clock that stands still.
type testReads struct {
	t               *testing.T
	client          client.Client
	store           *backlog.Store
	targets         *target.Targets
	credentials     *Credentials
	worker          *fixture.Worker
	instanceMetrics target.InstanceMetrics
	installed       bool
	now             time.Time
}

// newTestReads has the objects, and a function worker unless that is nil.
func newTestReads(t *testing.T, worker *fixture.Worker, objects ...client.Object) *testReads {
	t.Helper()
	scheme, err := Scheme()
	require.NoError(t, err)
	w := &testReads{
		t: t, worker: worker, instanceMetrics: target.NoInstanceMetrics, installed: true, now: time.Unix(1_800_000_000, 0),
		client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithIndex(&v1alpha1.AutoscalingPolicy{}, target.IndexScaleTarget, target.IndexPolicy).Build(),
	}
	w.store, err = backlog.NewStore(10*time.Second, time.Minute)
	require.NoError(t, err)
	w.restart()
	return w
}

// restart replaces the process: what it kept in memory is gone.
func (w *testReads) restart() {
	w.t.Helper()
	var err error
	w.credentials, err = NewCredentials(w.client, target.UseFunctionCredentials, target.OwnCredentials{}, w.clock)
	require.NoError(w.t, err)
	config := target.Config{
		Workloads: w.client, Installed: func(string) bool { return w.installed }, Objects: w.client,
		Credentials: w.credentials, InstanceMetrics: w.instanceMetrics, Now: w.clock,
	}
	if w.worker != nil {
		config.Worker, config.Consumers = w.worker, target.ConsumerCount(w.store, w.clock)
	}
	w.targets, err = target.New(config)
	require.NoError(w.t, err)
}

func (w *testReads) clock() time.Time { return w.now }

func (w *testReads) after(d time.Duration) { w.now = w.now.Add(d) }

func (w *testReads) forget(now time.Time) {
	w.targets.Forget(now)
	w.credentials.Forget(now)
}

// answer is Pulsar's: so many messages are pending, of so many published ever.
func (w *testReads) answer(pending, published int64) {
	w.store.Record(
		backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic},
		fixture.Sample(w.now, pending, published),
	)
}
