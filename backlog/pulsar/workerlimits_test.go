// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

func TestAWorkerThatHangsGetsNoRequestForAMinute(t *testing.T) {
	broker := newFakeBroker(t)
	const path = "/admin/v3/functions/public/default/"
	hangs := make(chan struct{})
	t.Cleanup(func() { close(hangs) })
	broker.on(path+"sf/status", func(http.ResponseWriter, *http.Request) { <-hangs })
	broker.on(path+"other/status", answers(`{"numInstances":1,"instances":[{"instanceId":0,"status":{"running":true}}]}`))
	broker.on(path+"sf", noContent())
	worker := newSource(t, Config{}, broker).Worker()
	now := time.Unix(1000, 0)
	worker.statuses.now = func() time.Time { return now }
	sf, other := broker.component(function.KindFunction, "sf"), broker.component(function.KindFunction, "other")

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := worker.Status(ctx, sf)
	require.ErrorIs(t, err, backlog.ErrUnreachable)
	now = now.Add(hangFor - 1)
	for _, component := range []function.Component{sf, other} {
		_, err = worker.Status(t.Context(), component)
		require.ErrorIs(t, err, backlog.ErrUnavailable)
		require.ErrorContains(t, err, "next request at 1970-01-01T00:17:40Z")
	}
	_, err = worker.FetchInstances(t.Context(),
		function.Component{
			Cluster: other.Cluster, Kind: function.KindSink, Tenant: "public", Namespace: "default",
			Name: "sk",
		}.Workload())
	require.ErrorIs(t, err, backlog.ErrUnavailable)
	require.Equal(t, []string{path + "sf/status"}, broker.requested())
	require.NoError(t, worker.SetParallelism(t.Context(), sf, 2), "other requests are allowed")

	now = now.Add(1)
	status, err := worker.Status(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, function.Status{Instances: 1, Running: 1}, status)
}

func TestAWorkerGetsOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newWorkerLimits(time.Now)
		here, err := componentAddress(function.Component{
			Cluster: backlog.Cluster{AdminURL: "http://here:8080"}, Kind: function.KindSink, Tenant: "public",
			Namespace: "default", Name: "sk",
		})
		require.NoError(t, err)
		there := here
		there.base = here.base.JoinPath("")
		there.base.Host = "there:8080"
		var mu sync.Mutex
		running, most := map[string]int{}, map[string]int{}
		done := make(chan error, 20)
		for range 10 {
			for _, a := range []address{here, there} {
				go func() {
					done <- limits.do(t.Context(), a, func() error {
						mu.Lock()
						running[a.base.Host]++
						most[a.base.Host] = max(most[a.base.Host], running[a.base.Host])
						mu.Unlock()
						time.Sleep(time.Second)
						mu.Lock()
						defer mu.Unlock()
						running[a.base.Host]--
						return nil
					})
				}()
			}
		}
		start := time.Now()
		for range 20 {
			require.NoError(t, <-done)
		}
		require.Equal(t, 10*time.Second, time.Since(start), "each host has its own turn")
		require.Equal(t, map[string]int{"here:8080": 1, "there:8080": 1}, most)

		go func() {
			done <- limits.do(t.Context(), here, func() error { time.Sleep(8 * time.Second); return nil })
		}()
		synctest.Wait()
		late, end := context.WithTimeout(t.Context(), 9*time.Second)
		defer end()
		err = limits.do(late, here, func() error { <-late.Done(); return late.Err() })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, <-done)
		require.Empty(t, limits.hanging.Values(), "it got its turn late, and had a second left")

		held := make(chan struct{})
		go func() {
			done <- limits.do(t.Context(), here, func() error { <-held; return nil })
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = limits.do(short, here, func() error { panic("it is not its turn") })
		require.ErrorIs(t, err, backlog.ErrUnreachable)
		close(held)
		require.NoError(t, <-done)
		require.NoError(t, limits.do(t.Context(), there, func() error { return nil }))
		require.Empty(t, limits.hanging.Values(), "a wait without a turn is not the host's failure")

		go func() {
			done <- limits.do(t.Context(), there, func() error { time.Sleep(2 * workerTimeout); return nil })
		}()
		synctest.Wait()
		err = limits.do(t.Context(), there, func() error {
			time.Sleep(workerTimeout)
			return context.DeadlineExceeded
		})
		require.Error(t, err)
		require.NoError(t, <-done)
		require.Len(t, limits.hanging.Values(), 1, "it got its turn late, and had all the time")
	})
}
