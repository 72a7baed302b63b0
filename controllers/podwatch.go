// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func (a *Addresses) why() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unknown
}

// learn notes why nothing is known, and says whether that is new.
func (a *Addresses) learn(unknown error) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	changed = a.unknown == nil || unknown == nil || a.unknown.Error() != unknown.Error()
	a.unknown = unknown
	return changed
}

// NeedLeaderElection is false: every replica asks instances.
func (a *Addresses) NeedLeaderElection() bool { return false }

// Start brings pods into memory as soon as they may be seen, until the context ends. It returns no error for pods that may
// not: all else goes on without them.
func (a *Addresses) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("pods")
	ticker := time.NewTicker(a.every)
	defer ticker.Stop()
	for {
		err := a.probe(ctx)
		if err == nil {
			break
		}
		if a.learn(err) && ctx.Err() == nil {
			logger.Error(err, "instances are not asked", "lookAgainEvery", a.every.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	a.learn(errPodsNotRead)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.pods.Start(ctx) })
	group.Go(func() error {
		if !a.pods.WaitForCacheSync(ctx) {
			return nil // stopping
		}
		select {
		case <-a.refused: // before the list that is here now
		default:
		}
		a.follow(ctx)
		return nil
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
}

// follow says what is known of pods for as long as they are watched.
func (a *Addresses) follow(ctx context.Context) {
	logger := log.FromContext(ctx).WithName("pods")
	for {
		a.learn(nil)
		logger.Info("watching pods")
		select {
		case <-ctx.Done():
			return
		case <-a.refused:
		}
		a.learn(errPodsForbidden)
		logger.Error(errPodsForbidden, "instances are not asked any more", "lookAgainEvery", a.every.String())
		if !a.regain(ctx) {
			return
		}
	}
}

// regain waits until pods may be seen again and have been listed anew: client-go tries a refused watch again within a
// minute. It returns false when the context ends.
func (a *Addresses) regain(ctx context.Context) bool {
	ticker := time.NewTicker(a.every)
	defer ticker.Stop()
	for allowed := false; ; {
		select {
		case <-ctx.Done():
			return false
		case <-a.refused:
			allowed = false
		case <-ticker.C:
			if allowed {
				return true
			}
			allowed = a.probe(ctx) == nil
		}
	}
}

// watchFailed notes that the watch of pods is forbidden now: the last list would stay for good, and its addresses become
// other pods'. A watch that lasts is not asked about its rights; it ends after 5 to 10 minutes.
func (a *Addresses) watchFailed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	select {
	case a.refused <- struct{}{}:
	default:
	}
}

// probe lists one pod as the watch will list all.
func (a *Addresses) probe(ctx context.Context) error {
	selector, err := instanceSelector()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var list corev1.PodList
	err = a.direct.List(ctx, &list, client.Limit(1), client.MatchingLabelsSelector{Selector: selector})
	switch {
	case apierrors.IsForbidden(err):
		return errPodsForbidden
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: the API server takes longer than %s to list a pod", backlog.ErrNoData, lookupTimeout)
	case err != nil:
		return fmt.Errorf("%w: listing pods: %w", backlog.ErrNoData, err)
	}
	return nil
}
