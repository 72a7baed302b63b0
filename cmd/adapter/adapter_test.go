// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
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
