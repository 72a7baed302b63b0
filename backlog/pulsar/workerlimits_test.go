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
	synctest.Test(t, func(t *testing.T) {
		way := newNetwork(t)
		broker := way.broker("worker:6750")
		const path = "/admin/v3/functions/public/default/"
		broker.on(path+"sf/status", hangs)
		broker.on(path+"slow/status", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(workerTimeout - 1) // for instances that do not answer
			answers(`{"numInstances":1,"instances":[{"instanceId":0,"status":{"running":false}}]}`)(w, r)
		})
		broker.on(path+"other/status", answers(`{"numInstances":1,"instances":[{"instanceId":0,"status":{"running":true}}]}`))
		broker.on(path+"sf", noContent())
		worker := way.source(Config{}).Worker(0)
		component := func(name string) function.Component { return broker.component(function.KindFunction, name) }

		status, err := worker.Status(t.Context(), component("slow"))
		require.NoError(t, err)
		require.Equal(t, 1, status.Instances)

		stopped, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		_, err = worker.Status(stopped, component("sf"))
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, worker.hanging.Values(), "the program ends")
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = worker.Status(short, component("sf"))
		require.ErrorIs(t, err, backlog.ErrUnreachable)
		require.Empty(t, worker.hanging.Values(), "the worker may need longer")

		start := time.Now()
		_, err = worker.Status(t.Context(), component("sf"))
		require.ErrorIs(t, err, backlog.ErrUnreachable)
		require.Equal(t, workerTimeout, time.Since(start))
		before := len(broker.requested())
		time.Sleep(hangFor - 1)
		for _, name := range []string{"sf", "other"} {
			_, err = worker.Status(t.Context(), component(name))
			require.ErrorIs(t, err, backlog.ErrUnavailable)
			require.ErrorContains(t, err, "next request at "+start.Add(workerTimeout+hangFor).UTC().Format(time.RFC3339))
		}
		_, err = worker.FetchInstances(t.Context(),
			function.Component{
				Cluster: component("sk").Cluster, Kind: function.KindSink, Tenant: "public", Namespace: "default",
				Name: "sk",
			})
		require.ErrorIs(t, err, backlog.ErrUnavailable)
		require.Len(t, broker.requested(), before)
		require.NoError(t, worker.SetParallelism(t.Context(), component("sf"), 2), "other requests are allowed")

		time.Sleep(time.Nanosecond)
		status, err = worker.Status(t.Context(), component("other"))
		require.NoError(t, err)
		require.Equal(t, function.Status{Instances: 1, Running: 1}, status)
	})
}

func TestAWorkerGetsOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := (&Source{now: time.Now}).Worker(0)
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
					done <- limits.inTurn(t.Context(), a, func(context.Context) error {
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

		waits := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		go func() {
			done <- limits.inTurn(t.Context(), here, func(context.Context) error { time.Sleep(8 * time.Second); return nil })
		}()
		synctest.Wait()
		turn := time.Now().Add(8 * time.Second)
		require.NoError(t, limits.inTurn(t.Context(), here, func(ctx context.Context) error {
			deadline, _ := ctx.Deadline()
			require.Equal(t, turn.Add(workerTimeout), deadline, "it got its turn late, and has its whole time")
			return nil
		}))
		require.NoError(t, <-done)

		held := make(chan struct{})
		go func() {
			done <- limits.inTurn(t.Context(), here, func(context.Context) error { <-held; return nil })
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = limits.inTurn(short, here, func(context.Context) error { panic("it is not its turn") })
		require.ErrorIs(t, err, backlog.ErrUnavailable)
		require.ErrorContains(t, err, "not sent, a worker is asked for one status at a time")
		close(held)
		require.NoError(t, <-done)
		require.NoError(t, limits.inTurn(t.Context(), there, func(context.Context) error { return nil }))
		require.Empty(t, limits.hanging.Values(), "a wait without a turn is not the host's failure")

		require.ErrorIs(t, limits.inTurn(t.Context(), there, waits), context.DeadlineExceeded)
		require.Len(t, limits.hanging.Values(), 1)
		require.Error(t, limits.inTurn(t.Context(), here, func(context.Context) error {
			return statusFault(here, here.base, errorAnswer{status: http.StatusGatewayTimeout}, nil)
		}))
		require.Len(t, limits.hanging.Values(), 2, "a proxy gave the answer up")
	})
}
