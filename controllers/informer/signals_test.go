// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// newSignals answers in the given world; its looks run when look is called.
func newSignals(t *testing.T, w *testReads) (s *Signals, look func() int) {
	t.Helper()
	s, err := NewSignals(SignalsConfig{
		Store: w.store, Targets: w.targets,
		Policies: &Policies{reader: w.client, synced: func() bool { return true }}, Now: w.clock, Forget: w.forget,
	})
	require.NoError(t, err)
	return s, func() (looks int) {
		for {
			select {
			case a := <-s.queue:
				s.resolve(t.Context(), a)
				looks++
			default:
				return looks
			}
		}
	}
}

func TestWhatIsAskedForIsTrackedAndThenAnswered(t *testing.T) {
	for name, resource := range map[string]schema.GroupResource{
		"for a policy": v1alpha1.GroupResource(), "for a Function": cluster.ResourceFor(
			cluster.KindFunction), "for a Sink": cluster.ResourceFor(cluster.KindSink),
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestReads(
				t,
				nil,
				fixture.Function(),
				fixture.Workload(cluster.KindSink),
				fixture.Policy(),
				fixture.ConfigMap(),
			)
			s, look := newSignals(t, w)
			for range 3 {
				_, err := s.Read(resource, fixture.Key(), backlog.Slim, w.now)
				require.ErrorIs(t, err, backlog.ErrNoData)
			}
			require.Equal(t, 1, look(), "asked thrice, looked up once")
			_, err := s.Read(resource, fixture.Key(), backlog.Slim, w.now)
			require.ErrorIs(t, err, backlog.ErrNoData, "tracked, and not fetched yet")
			w.answer(700, 10_000)
			reading, err := s.Read(resource, fixture.Key(), backlog.Slim, w.now)
			require.NoError(t, err)
			ready, err := reading.Ready.Value()
			require.NoError(t, err)
			require.InDelta(t, 700, ready, 0)
		})
	}
}

func TestBytesAreMeasuredWhileSomebodyAsksForThem(t *testing.T) {
	w := newTestReads(t, nil, fixture.Function(), fixture.ConfigMap())
	s, look := newSignals(t, w)
	read := func(detail backlog.Detail) backlog.Subscription {
		subscription, err := s.subscription(
			signalKey{resource: cluster.ResourceFor(cluster.KindFunction), key: fixture.Key()},
			detail,
			w.now,
		)
		require.NoError(t, err)
		return subscription
	}
	_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	look()
	require.False(t, read(backlog.Slim).Bytes)
	before := s.lookups[signalKey{resource: cluster.ResourceFor(cluster.KindFunction), key: fixture.Key()}].trackedAt
	w.after(time.Second)
	require.True(t, read(backlog.Bytes).Bytes)
	require.NotEqual(
		t,
		before,
		s.lookups[signalKey{resource: cluster.ResourceFor(cluster.KindFunction), key: fixture.Key()}].trackedAt,
		"the store is told at once",
	)
	w.after(trackFor)
	require.True(t, read(backlog.Slim).Bytes, "those who ask for other numbers do not end it")
	w.after(time.Second)
	require.False(t, read(backlog.Slim).Bytes)
}

func TestWhatNobodyAsksForAnyMoreIsForgotten(t *testing.T) {
	w := newTestReads(t, nil, fixture.Function(), fixture.ConfigMap())
	s, look := newSignals(t, w)
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in")
	_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
	require.Error(t, err)
	look()
	for range 40 { // ten minutes of questions every 15 s keep it, even while no look comes to an end
		w.after(15 * time.Second)
		w.store.Expire(w.now)
		s.expire(w.now)
		w.answer(700, 10_000)
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
		require.NoError(t, err)
	}
	w.after(trackFor + time.Second)
	w.store.Expire(w.now)
	s.expire(w.now)
	_, err = w.store.Read(subscription, w.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	require.Empty(t, s.lookups)
}

func TestWhatCannotBeAnsweredSaysWhy(t *testing.T) {
	t.Run("an object that does not exist", func(t *testing.T) {
		w := newTestReads(t, nil)
		s, look := newSignals(t, w)
		for _, resource := range []schema.GroupResource{v1alpha1.GroupResource(), cluster.ResourceFor(cluster.KindFunction)} {
			_, err := s.Read(resource, fixture.Key(), backlog.Slim, w.now)
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		}
		require.Zero(t, look(), "and costs no look")
	})
	t.Run("an object of another kind", func(t *testing.T) {
		w := newTestReads(t, nil)
		s, _ := newSignals(t, w)
		_, err := s.Read(schema.GroupResource{Group: "apps", Resource: "deployments"}, fixture.Key(), backlog.Slim, w.now)
		require.ErrorIs(t, err, backlog.ErrNotTracked)
		require.ErrorContains(t, err, "not for deployments.apps")
	})
	t.Run("a Function whose pattern cannot be compiled", func(t *testing.T) {
		function := fixture.Function()
		function.Object["spec"].(map[string]any)["input"] = map[string]any{"topicPattern": "a(?=b).*"}
		w := newTestReads(t, nil, function, fixture.ConfigMap())
		s, look := newSignals(t, w)
		_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
		look()
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
		require.ErrorContains(t, err, "write it without them, or name the topics")
		require.ErrorIs(t, err, backlog.ErrUnsupported, "which nobody holds an answer for")
	})
	t.Run("Functions that are not in memory yet", func(t *testing.T) {
		w := newTestReads(t, nil, fixture.Function())
		w.installed = false
		s, _ := newSignals(t, w)
		_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
	})
	t.Run("an object that went away", func(t *testing.T) {
		w := newTestReads(t, nil, fixture.Function(), fixture.ConfigMap())
		s, look := newSignals(t, w)
		_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
		look()
		require.NoError(t, w.client.Delete(t.Context(), fixture.Function()))
		w.after(resolveAgain)
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
		require.ErrorIs(t, err, backlog.ErrNoData, "the answer in force until the next look")
		require.Equal(t, 1, look())
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

func TestQuestionsBeyondTheQueueNeitherBlockNorPileUp(t *testing.T) {
	w := newTestReads(t, nil, fixture.Function(), fixture.ConfigMap())
	s, _ := newSignals(t, w)
	for range maxUnresolved {
		s.queue <- signalKey{}
	}
	_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	require.Empty(t, s.lookups)
}

func TestLooksRunInTheBackgroundUntilTheEnd(t *testing.T) {
	w := newTestReads(t, nil, fixture.Function(), fixture.ConfigMap())
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var forgotten []time.Time
		s, err := NewSignals(SignalsConfig{
			Store: w.store, Targets: w.targets,
			Policies: &Policies{reader: w.client, synced: func() bool { return true }},
			Now:      func() time.Time { return w.now.Add(time.Since(start)) },
			Forget:   func(now time.Time) { forgotten = append(forgotten, now) },
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Start(ctx) }()
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
		synctest.Wait()
		w.answer(700, 10_000)
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, w.now)
		require.NoError(t, err)
		time.Sleep(trackAgain)
		synctest.Wait()
		require.Equal(t, []time.Time{w.now.Add(trackAgain)}, forgotten, "what was read and is not used any more goes")
		cancel()
		require.NoError(t, <-done)
	})
}

func TestPoliciesAreReadFromMemory(t *testing.T) {
	w := newTestReads(t, nil, fixture.Policy())
	policies := &Policies{reader: w.client, synced: func() bool { return true }}
	p, err := policies.Policy(fixture.Key())
	require.NoError(t, err)
	require.Equal(t, "resize", p.Spec.ScaleTargetRef.Name)
	_, err = policies.Policy(types.NamespacedName{Namespace: fixture.Namespace, Name: "other"})
	require.True(t, apierrors.IsNotFound(err))
	policies.synced = func() bool { return false }
	_, err = policies.Policy(fixture.Key())
	require.ErrorIs(t, err, backlog.ErrNoData)
}
