// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const anyMetric = "pulsar_function_consumers"

// hanging reads return when released.
func hanging(release <-chan struct{}) Signals {
	return fakeSignals(func(Object) (backlog.Reading, error) {
		<-release
		return reading(), nil
	})
}

func TestAnAnswerThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newTestProvider(t, Config{Signals: hanging(release)})
		start := time.Now()
		_, err := c.GetMetricByName(t.Context(), orders(), info(functions(), anyMetric), nil)
		requireStatus(t, err, 503, "the adapter did not answer within 250ms")
		require.Equal(t, budget, time.Since(start))
		close(release)
	})
}

func TestAnAnswerIsGivenUpWhenTheClientIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newTestProvider(t, Config{Signals: hanging(release)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := c.GetMetricByName(ctx, orders(), info(functions(), anyMetric), nil)
		requireStatus(t, err, 503, "the client is gone")
		require.Equal(t, time.Millisecond, time.Since(start))
		close(release)
	})
}

func TestAnswersThatHangDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newTestProvider(t, Config{Signals: hanging(release)})
		for range maxAnswers {
			go func() { _, _ = c.GetMetricByName(t.Context(), orders(), info(functions(), anyMetric), nil) }()
		}
		synctest.Wait()
		_, err := c.GetMetricByName(t.Context(), orders(), info(functions(), anyMetric), nil)
		requireStatus(t, err, 503, "the adapter is overloaded: 400 answers are under way")
		close(release)
		synctest.Wait()
		_, err = c.GetMetricByName(t.Context(), orders(), info(functions(), anyMetric), nil)
		require.NoError(t, err)
	})
}

func TestAPanicReachesTheRequest(t *testing.T) {
	c := newTestProvider(t, Config{Signals: fakeSignals(func(Object) (backlog.Reading, error) { panic("a bug") })})
	defer func() { require.Regexp(t, "(?s)^a bug\n.*deadline_test.go", recover()) }()
	_, _ = c.GetMetricByName(t.Context(), orders(), info(functions(), anyMetric), nil)
	require.Fail(t, "the panic was swallowed")
}
