// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

// stoppedInstancesAreSilent has a stopped function and one that cannot start.
func stoppedInstancesAreSilent(t *testing.T, w *workerBroker) {
	require.NoError(t, w.CreateTopic(t.Context(), "stopped-in", 0))
	require.NoError(t, w.CreateTopic(t.Context(), "broken-in", 0))
	w.create(t, function.KindFunction, w.function("stopped", "stopped-in"))
	w.consumed(t, broker.TopicName("stopped-in"), "public/default/stopped", 2)
	w.demand(t, http.MethodPost, "/admin/v3/functions/public/default/stopped/stop")

	broken := w.function("broken", "broken-in")
	broken["userConfig"].(map[string]any)["collector"] = "127.0.0.1:1" // a closed port
	w.create(t, function.KindFunction, broken)
	for _, name := range []string{"stopped", "broken"} {
		sample := w.instances(t, function.KindFunction, name, func(s backlog.InstancesSample) bool { return s.Silent == 2 })
		require.Empty(t, sample.Instances)
	}
	require.Contains(t, string(w.demand(t, http.MethodGet, "/admin/v3/functions/public/default/broken/stats")),
		`"receivedTotal":0`,
		"its stats look like those of an idle function")
}

func missingComponents(t *testing.T, w *workerBroker) {
	for _, kind := range []function.Kind{function.KindFunction, function.KindSink, function.KindSource} {
		component := w.component(kind, "nope")
		_, err := w.worker.Describe(t.Context(), component)
		require.ErrorIs(t, err, backlog.ErrFunctionNotFound, err)
		require.ErrorContains(t, err, string(kind)+" public/default/nope: create it or correct its name")
		_, err = w.worker.FetchInstances(t.Context(), component)
		require.ErrorIs(t, err, backlog.ErrFunctionNotFound, err)
	}
	_, err := w.worker.Describe(t.Context(), w.component(function.KindSink, "shared"))
	require.ErrorIs(t, err, backlog.ErrFunctionNotFound, "a function is no sink")
}

// workersThatAreAway reads continuously during a restart of the broker: the worker responds with 503 from the start of
// the web server until it has read its functions. That may be too short to be seen, so the test does not require it.
func workersThatAreAway(t *testing.T, w *workerBroker) {
	component := w.component(function.KindFunction, "shared")
	restarted := make(chan error, 1)
	go func() { restarted <- w.Restart(t.Context()) }()
	seen := map[string]int{}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for running := true; running; {
		_, err := w.worker.Describe(t.Context(), component)
		if err == nil {
			seen["answered"]++
		} else {
			require.True(t, isAway(err), "an existing function while its worker is away: %v", err)
			seen[err.Error()]++
		}
		select {
		case err := <-restarted:
			require.NoError(t, err)
			running = false
		case <-ticker.C:
		}
	}
	t.Log("while the broker started again:", seen)
	// After the restart, requests are made one at a time until one succeeds, within half a minute.
	var config function.Description
	eventually(t, "the worker to answer again", func() bool {
		var err error
		config, err = w.worker.Describe(t.Context(), component)
		return err == nil
	})
	require.Equal(t, "public/default/shared", config.Subscription.Name)

	w.Kill()
	_, err := w.worker.Describe(t.Context(), component)
	require.ErrorIs(t, err, backlog.ErrUnreachable)
	_, err = w.worker.FetchInstances(t.Context(), component)
	require.ErrorIs(t, err, backlog.ErrUnreachable)
}

// isAway reports whether the error is about the worker and not about the function.
func isAway(err error) bool {
	return errors.Is(err, backlog.ErrUnreachable) || errors.Is(err, backlog.ErrUnavailable)
}
