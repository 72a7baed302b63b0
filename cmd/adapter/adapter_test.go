// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/poller"
)

// caching is a manager with a cache that is filled.
type caching struct{ ctrl.Manager }

func (caching) GetCache() cache.Cache { return &informertest.FakeInformers{} }

// deciding always decides.
type deciding struct{}

func (deciding) Current(*v1alpha1.AutoscalingPolicy, time.Time) error { return nil }

func TestNoDecisionIsCurrentAfterTheCachesHaveStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &adapter{manager: caching{}}
		current := func() error {
			return cachedDecisions{deciding{}, a.ready}.Current(&v1alpha1.AutoscalingPolicy{}, time.Now())
		}
		require.ErrorContains(t, current(), "not listed yet")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.watchCaches(ctx) }()
		synctest.Wait()
		require.NoError(t, current())
		stop()
		require.NoError(t, <-ended)
		require.ErrorContains(t, current(), "this process ends")
	})
}

func TestAProcessThatPollsOrReconcilesNoMoreIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := backlog.NewStore(10*time.Second, time.Minute, backlog.Bounds{})
		require.NoError(t, err)
		parts, err := poller.New(poller.Config{
			Options: poller.NewOptions(), Store: store, Updated: func(backlog.Topic) {}, Registerer: prometheus.NewRegistry(),
		})
		require.NoError(t, err)
		defer parts.Source.Close()
		var hangs error
		a := &adapter{pulsar: parts, reconciling: func(time.Time) error { return hangs }}
		failing := func() (names []string) {
			for _, check := range a.liveChecks() {
				if check.Check(nil) != nil {
					names = append(names, check.Name())
				}
			}
			return names
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- parts.Poller.Run(ctx) }()
		time.Sleep(time.Minute)
		require.Empty(t, failing())
		hangs = errors.New("reconciles hang")
		require.Equal(t, []string{"reconcile-loop"}, failing())
		hangs = nil
		stop()
		require.NoError(t, <-ended)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"poll-loop"}, failing())
	})
}
