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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
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

func TestWhatAWorkerRunsIsAskedForInTheBackground(t *testing.T) {
	w := newTestReads(t, fixture.NewWorker())
	s, look := newSignals(t, w)
	for range 3 {
		_, err := s.ReadComponent(testComponent(), w.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
		require.ErrorContains(t, err,
			"first request for function public/default/resize, its subscription is being resolved")
	}
	require.Zero(t, w.worker.Described, "who asks never waits for the worker")
	require.Equal(t, 1, look())
	require.Equal(t, 1, w.worker.Described)
	_, err := s.ReadComponent(testComponent(), w.now)
	require.ErrorIs(t, err, backlog.ErrNoData, "tracked, and not fetched yet")
	w.answer(700, 10_000)
	reading, err := s.ReadComponent(testComponent(), w.now)
	requireReady(t, 700, reading, err)
	require.Zero(t, look(), "the way is known")
	w.after(resolveAgain)
	_, err = s.ReadComponent(testComponent(), w.now)
	require.NoError(t, err)
	require.Equal(t, 1, look(), "and looked up again")
	subscription, err := s.subscription(signalKey{component: testComponent()}, backlog.Slim, w.now)
	require.NoError(t, err)
	require.Empty(t, subscription.Workload, "where instances are not measured")
}

func TestTheInstancesOfWhatAWorkerRunsAreMeasuredWherePodsAre(t *testing.T) {
	w := newTestReads(t, fixture.NewWorker())
	w.instanceMetrics = target.PodInstanceMetrics
	w.restart()
	s, look := newSignals(t, w)
	_, err := s.ReadComponent(testComponent(), w.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	look()
	subscription, err := s.subscription(signalKey{component: testComponent()}, backlog.Slim, w.now)
	require.NoError(t, err)
	require.Equal(t, testComponent().Workload(), subscription.Workload)
}

func TestWhatAWorkerSaysIsTheReason(t *testing.T) {
	for name, reason := range map[string]error{
		"there is no such function": backlog.ErrFunctionNotFound, "there is no worker": backlog.ErrNoWorker,
		"it may not be asked": backlog.ErrForbidden,
		"nobody answers":      backlog.ErrUnreachable, "it cannot be asked so": backlog.ErrUnsupported,
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestReads(t, fixture.NewWorker())
			s, look := newSignals(t, w)
			w.worker.DescribeError = backlog.Because(reason, "because")
			_, err := s.ReadComponent(testComponent(), w.now)
			require.ErrorIs(t, err, backlog.ErrNoData)
			look()
			_, err = s.ReadComponent(testComponent(), w.now)
			require.ErrorIs(t, err, reason)
			require.ErrorContains(t, err, "because")
			w.worker.DescribeError = nil
			w.after(resolveAgain)
			_, err = s.ReadComponent(testComponent(), w.now)
			require.ErrorIs(t, err, reason, "the last word until the next")
			require.Equal(t, 1, look())
			w.answer(700, 10_000)
			reading, err := s.ReadComponent(testComponent(), w.now)
			requireReady(t, 700, reading, err)
		})
	}
}

func TestTroubleWithAWorkerLeavesWhatItSaidInForce(t *testing.T) {
	for name, test := range map[string]struct {
		reason error
		stays  bool
	}{
		"while nobody answers":              {backlog.ErrUnreachable, true},
		"while the credentials are refused": {backlog.ErrUnauthenticated, true},
		"but not when the function is gone": {backlog.ErrFunctionNotFound, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestReads(t, fixture.NewWorker())
			s, look := newSignals(t, w)
			_, err := s.ReadComponent(testComponent(), w.now)
			require.Error(t, err)
			look()
			w.worker.DescribeError = backlog.Because(test.reason, "because")
			w.after(resolveAgain)
			w.answer(700, 10_000)
			_, err = s.ReadComponent(testComponent(), w.now)
			require.NoError(t, err)
			require.Equal(t, 1, look())
			_, err = s.ReadComponent(testComponent(), w.now)
			if test.stays {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, test.reason)
		})
	}
}

func TestWhereNobodyAsksWorkersThatIsSaidAtOnce(t *testing.T) {
	w := newTestReads(t, nil)
	s, look := newSignals(t, w)
	_, err := s.ReadComponent(testComponent(), w.now)
	require.ErrorIs(t, err, backlog.ErrUnsupported)
	require.Zero(t, look())
	require.Empty(t, s.lookups)
}

func TestASubscriptionByNameIsTrackedAtOnce(t *testing.T) {
	w := newTestReads(t, nil)
	s, look := newSignals(t, w)
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", fixture.Topic)
	_, err := s.ReadSubscription(subscription, w.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	w.answer(700, 10_000)
	reading, err := s.ReadSubscription(subscription, w.now)
	requireReady(t, 700, reading, err)
	elsewhere := subscription
	elsewhere.Cluster.Access = "connection/east"
	_, err = s.ReadSubscription(elsewhere, w.now)
	require.ErrorIs(t, err, backlog.ErrNoData, "the same topic seen with other credentials is another")
	w.after(time.Hour)
	_, err = s.ReadSubscription(subscription, w.now)
	require.ErrorIs(t, err, backlog.ErrStale)
	require.Zero(t, look(), "nothing is looked up")
}

func TestASubscriptionByNameIsForgottenWhenNobodyAsks(t *testing.T) {
	w := newTestReads(t, nil)
	s, _ := newSignals(t, w)
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", fixture.Topic)
	_, err := s.ReadSubscription(subscription, w.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	renewed := map[time.Time]bool{}
	for range 40 { // ten minutes of questions every 15 s
		w.after(15 * time.Second)
		w.store.Expire(w.now)
		s.expire(w.now)
		w.answer(700, 10_000)
		_, err = s.ReadSubscription(subscription, w.now)
		require.NoError(t, err)
		for _, w := range s.lookups {
			renewed[w.trackedAt] = true
		}
	}
	require.LessOrEqual(t, len(renewed), 11, "the store is told at most once a minute")
	w.after(trackFor + time.Second)
	w.store.Expire(w.now)
	s.expire(w.now)
	_, err = w.store.Read(subscription, w.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	require.Empty(t, s.lookups)
}

func TestManyWhoAskAtOnceAllWaitForTheFirstAnswer(t *testing.T) {
	w := newTestReads(t, nil)
	s, _ := newSignals(t, w)
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", fixture.Topic)
	answers := make(chan error, 50)
	var asking sync.WaitGroup
	for range cap(answers) {
		asking.Go(func() {
			_, err := s.ReadSubscription(subscription, w.now)
			answers <- err
		})
	}
	asking.Wait()
	close(answers)
	for err := range answers {
		require.ErrorIs(t, err, backlog.ErrNoData)
	}
}

func TestNamesThatSomebodyMakesUpHaveABound(t *testing.T) {
	w := newTestReads(t, fixture.NewWorker())
	s, _ := newSignals(t, w)
	for i := range maxNamed {
		s.lookups[signalKey{subscription: strconv.Itoa(i)}] = &lookup{usedAt: w.now}
	}
	_, err := s.ReadComponent(testComponent(), w.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	_, err = s.ReadSubscription(backlog.NewSubscription(fixture.Cluster(), "s", "t"), w.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	require.ErrorContains(t, err, "exceeds the limit of 20000 that clients may request in 5m0s")
	require.Len(t, s.lookups, maxNamed)
}

func TestTopicsThatSomebodyMakesUpHaveABound(t *testing.T) {
	w := newTestReads(t, fixture.NewWorker())
	s, _ := newSignals(t, w)
	const each = 100
	made := func(i int) backlog.Subscription {
		topics := make([]string, each)
		for j := range topics {
			topics[j] = strconv.Itoa(i) + "-" + strconv.Itoa(j)
		}
		return backlog.NewSubscription(fixture.Cluster(), "s", topics...)
	}
	for i := range maxNamedTopics / each {
		_, err := s.ReadSubscription(made(i), w.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
	}
	_, err := s.ReadSubscription(made(-1), w.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	require.ErrorContains(t, err, "the limit is 50000: remove unused triggers")
	_, err = s.ReadSubscription(made(0), w.now)
	require.ErrorIs(t, err, backlog.ErrNoData, "those that were first stay")
	w.after(trackFor + time.Second)
	s.expire(w.now)
	_, err = s.ReadSubscription(made(-1), w.now)
	require.ErrorIs(t, err, backlog.ErrNoData, "when nobody asks for the others any more")
}
