// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

const (
	leasePath  = "/apis/coordination.k8s.io/v1/namespaces/system/leases/decider"
	statusPath = "/apis/pulsar-autoscaler.io/v1alpha1/namespaces/media/autoscalingpolicies/resize/status"
)

// server responds with a status after a delay.
type server struct {
	takes  time.Duration
	status int
	// got counts the requests that arrived.
	got int
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	s.got++
	time.Sleep(s.takes)
	return &http.Response{StatusCode: s.status, Body: http.NoBody}, nil
}

// closing records that a body was closed.
type closing struct {
	*strings.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func send(t *testing.T, transport http.RoundTripper, method, path string) error {
	t.Helper()
	body := &closing{Reader: strings.NewReader("{}")}
	request, err := http.NewRequestWithContext(t.Context(), method, "https://kubernetes"+path, body)
	require.NoError(t, err)
	response, err := transport.RoundTrip(request)
	if err != nil {
		require.True(t, body.closed)
		return err
	}
	return response.Body.Close()
}

func TestAProcessWritesWhileItsLeaseLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fence := NewFence(types.NamespacedName{Namespace: "system", Name: "decider"}, 15*time.Second)
		api := &server{status: http.StatusOK}
		transport := fence.Transport(api)
		time.Sleep(time.Hour)
		require.NoError(t, send(t, transport, http.MethodPost, statusPath), "it never led")

		api.takes = 4 * time.Second // counted from when the request was sent
		require.NoError(t, send(t, transport, http.MethodPut, leasePath))
		api.takes = 0
		time.Sleep(11*time.Second - 1)
		require.NoError(t, send(t, transport, http.MethodPatch, statusPath))
		require.NoError(t, fence.Held())
		time.Sleep(time.Nanosecond)
		arrived := api.got
		for _, method := range []string{http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodDelete} {
			require.ErrorIs(t, send(t, transport, method, statusPath), ErrLeaseExpired)
		}
		require.ErrorIs(t, send(t, transport, http.MethodPut, leasePath), ErrLeaseExpired, "it ends, and acquires none")
		require.Equal(t, arrived, api.got)
		require.NoError(t, send(t, transport, http.MethodGet, statusPath))
		require.EqualError(t, fence.Held(),
			"the Lease expired: it was renewed 15s ago and lasts for 15s, so another replica may lead")
	})
}

func TestALeaseExpiresWithoutRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fence := NewFence(types.NamespacedName{Namespace: "system", Name: "decider"}, 15*time.Second)
		api := &server{status: http.StatusCreated}
		transport := fence.Transport(api)
		require.NoError(t, send(t, transport, http.MethodPost, strings.TrimSuffix(leasePath, "/decider")))
		time.Sleep(10 * time.Second)
		api.status = http.StatusConflict
		require.NoError(t, send(t, transport, http.MethodPut, leasePath))
		time.Sleep(5 * time.Second)
		require.ErrorIs(t, fence.Held(), ErrLeaseExpired)
	})
}

func TestAnExpiredLeaseEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fence := NewFence(types.NamespacedName{Namespace: "system", Name: "decider"}, 15*time.Second)
		transport := fence.Transport(&server{status: http.StatusOK})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- fence.Watch(ctx) }()
		time.Sleep(time.Hour)
		require.NoError(t, send(t, transport, http.MethodPut, leasePath))
		begun := time.Now()
		require.ErrorIs(t, <-ended, ErrLeaseExpired)
		require.LessOrEqual(t, time.Since(begun), 16*time.Second)

		go func() { ended <- NewFence(types.NamespacedName{}, time.Second).Watch(ctx) }()
		cancel()
		require.NoError(t, <-ended)
	})
}
