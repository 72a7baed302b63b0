// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func testComponent() function.Component {
	return function.Component{
		Cluster: fixture.Cluster(), Kind: function.KindFunction, Tenant: "public", Namespace: "default",
		Name: "resize",
	}
}

func requireReady(t *testing.T, want float64, reading backlog.Reading, err error) {
	t.Helper()
	require.NoError(t, err)
	ready, err := reading.Ready.Value()
	require.NoError(t, err)
	require.InDelta(t, want, ready, 0)
}

func TestComponentIsResolvedInTheBackground(t *testing.T) {
	env := newTestEnv(t, fixture.NewWorker())
	s, resolve := testSignals(t, env)
	for range 3 {
		_, err := s.ReadComponent("media", testComponent(), env.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
		require.ErrorContains(t, err,
			"first request for function public/default/resize, its subscription is being resolved")
	}
	require.Zero(t, env.worker.Described, "a request never waits for the worker")
	require.Equal(t, 1, resolve())
	require.Equal(t, 1, env.worker.Described)
	_, err := s.ReadComponent("media", testComponent(), env.now)
	require.ErrorIs(t, err, backlog.ErrNoData, "tracked, and not fetched yet")
	env.answer(700, 10_000)
	reading, err := s.ReadComponent("media", testComponent(), env.now)
	requireReady(t, 700, reading, err)
	require.Zero(t, resolve(), "the subscription is known")
	env.after(resolveAgain)
	_, err = s.ReadComponent("media", testComponent(), env.now)
	require.NoError(t, err)
	require.Equal(t, 1, resolve(), "and resolved again")
	subscription, err := s.subscription(named("media", testComponent()), backlog.Slim, env.now)
	require.NoError(t, err)
	require.Equal(t, testComponent(), subscription.Workload)
}

func TestWorkerErrorIsReported(t *testing.T) {
	for name, reason := range map[string]error{
		"a missing function": backlog.ErrFunctionNotFound, "no worker": backlog.ErrNoWorker,
		"a forbidden request":   backlog.ErrForbidden,
		"an unreachable worker": backlog.ErrUnreachable, "an unsupported request": backlog.ErrUnsupported,
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, fixture.NewWorker())
			s, resolve := testSignals(t, env)
			env.worker.DescribeError = backlog.Errorf(reason, "because")
			_, err := s.ReadComponent("media", testComponent(), env.now)
			require.ErrorIs(t, err, backlog.ErrNoData)
			resolve()
			_, err = s.ReadComponent("media", testComponent(), env.now)
			require.ErrorIs(t, err, reason)
			require.ErrorContains(t, err, "because")
			env.worker.DescribeError = nil
			env.after(resolveAgain)
			_, err = s.ReadComponent("media", testComponent(), env.now)
			require.ErrorIs(t, err, reason, "until the next resolution")
			require.Equal(t, 1, resolve())
			env.answer(700, 10_000)
			reading, err := s.ReadComponent("media", testComponent(), env.now)
			requireReady(t, 700, reading, err)
		})
	}
}

func TestSubscriptionStaysWhileTheWorkerFails(t *testing.T) {
	for name, test := range map[string]struct {
		reason error
		stays  bool
	}{
		"while the worker is unreachable":   {backlog.ErrUnreachable, true},
		"while the credentials are refused": {backlog.ErrUnauthenticated, true},
		"not after the function is deleted": {backlog.ErrFunctionNotFound, false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, fixture.NewWorker())
			s, resolve := testSignals(t, env)
			_, err := s.ReadComponent("media", testComponent(), env.now)
			require.Error(t, err)
			resolve()
			env.worker.DescribeError = backlog.Errorf(test.reason, "because")
			env.after(resolveAgain)
			env.answer(700, 10_000)
			_, err = s.ReadComponent("media", testComponent(), env.now)
			require.NoError(t, err)
			require.Equal(t, 1, resolve())
			_, err = s.ReadComponent("media", testComponent(), env.now)
			if test.stays {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, test.reason)
		})
	}
}

func TestSubscriptionIsTrackedAtOnce(t *testing.T) {
	env := newTestEnv(t, nil)
	s, resolve := testSignals(t, env)
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", fixture.Topic)
	_, err := s.ReadSubscription("media", subscription, env.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	env.answer(700, 10_000)
	reading, err := s.ReadSubscription("media", subscription, env.now)
	requireReady(t, 700, reading, err)
	elsewhere := subscription
	elsewhere.Cluster.Access = "connection/east"
	_, err = s.ReadSubscription("media", elsewhere, env.now)
	require.ErrorIs(t, err, backlog.ErrNoData, "the same topic with other credentials is another")
	env.after(time.Hour)
	_, err = s.ReadSubscription("media", subscription, env.now)
	require.ErrorIs(t, err, backlog.ErrStale)
	require.Zero(t, resolve(), "nothing is resolved")
}

func TestConcurrentFirstRequestsHaveNoData(t *testing.T) {
	env := newTestEnv(t, nil)
	s, _ := testSignals(t, env)
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", fixture.Topic)
	errs := make(chan error, 50)
	var requests sync.WaitGroup
	for range cap(errs) {
		requests.Go(func() {
			_, err := s.ReadSubscription("media", subscription, env.now)
			errs <- err
		})
	}
	requests.Wait()
	close(errs)
	for err := range errs {
		require.ErrorIs(t, err, backlog.ErrNoData)
	}
}

func TestRequestedNamesAreBounded(t *testing.T) {
	env := newTestEnv(t, fixture.NewWorker())
	s, _ := testSignals(t, env)
	for i := range maxNamed {
		s.lookups[signalKey{subscription: strconv.Itoa(i)}] = &lookup{usedAt: env.now}
	}
	_, err := s.ReadComponent("media", testComponent(), env.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	_, err = s.ReadSubscription("media", backlog.NewSubscription(fixture.Cluster(), "s", "t"), env.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	require.ErrorContains(t, err, "exceeds the limit of 20000 that clients may request in 5m0s")
	require.Len(t, s.lookups, maxNamed)
}

// TestTheLastPlaceIsTakenOnce: another first request may have taken it since the key was looked up.
func TestTheLastPlaceIsTakenOnce(t *testing.T) {
	s, resolve := testSignals(t, newTestEnv(t, fixture.NewWorker()))
	s.named["media"] = maxNamed / maxShare
	require.ErrorIs(t, s.begin(named("media", testComponent()), &lookup{pending: true}), backlog.ErrNotTracked)
	require.Empty(t, s.lookups)
	require.Zero(t, resolve())
}

func TestRequestedTopicsAreBounded(t *testing.T) {
	env := newTestEnv(t, fixture.NewWorker())
	var err error
	bounds := backlog.Bounds{Subscription: 2000, Namespace: 5000}
	env.store, err = backlog.NewStore(10*time.Second, time.Minute, bounds)
	require.NoError(t, err)
	s, _ := testSignals(t, env)
	const each = 100
	subscribed := func(i int) backlog.Subscription {
		topics := make([]string, each)
		for j := range topics {
			topics[j] = strconv.Itoa(i) + "-" + strconv.Itoa(j)
		}
		return backlog.NewSubscription(fixture.Cluster(), "s", topics...)
	}
	read := func(namespace string, i int) error {
		_, err := s.ReadSubscription(namespace, subscribed(i), env.now)
		return err
	}
	const full = 5000 / each
	for i := range full {
		require.ErrorIs(t, read("neighbour", i), backlog.ErrNoData)
	}
	require.ErrorIs(t, read("neighbour", full), backlog.ErrTooManyTopics)
	require.ErrorContains(t, read("neighbour", full), "would have 5,100 topics, and the bound of a namespace is 5,000")
	require.ErrorIs(t, read("neighbour", 0), backlog.ErrNoData, "the earlier ones stay")
	require.ErrorIs(t, read("another", -1), backlog.ErrNoData, "one namespace takes no other's share")
	env.after(trackFor + time.Second)
	env.store.Expire(env.now)
	s.expire(env.now)
	require.Empty(t, s.named)
	require.ErrorIs(t, read("neighbour", full), backlog.ErrNoData, "after the others expired")
}

func TestTheNamesOfANamespaceAreBounded(t *testing.T) {
	env := newTestEnv(t, fixture.NewWorker())
	s, _ := testSignals(t, env)
	read := func(namespace string, i int) error {
		_, err := s.ReadSubscription(namespace, backlog.NewSubscription(fixture.Cluster(), strconv.Itoa(i), "t"), env.now)
		return err
	}
	for i := range maxNamed / maxShare {
		require.ErrorIs(t, read("neighbour", i), backlog.ErrNoData)
	}
	require.ErrorContains(t, read("neighbour", -1), "namespace neighbour requests 5000 names, and its limit is 5000")
	require.ErrorIs(t, read("neighbour", -1), backlog.ErrNotTracked)
	require.ErrorIs(t, read("another", -1), backlog.ErrNoData, "one namespace takes no other's share")
}
