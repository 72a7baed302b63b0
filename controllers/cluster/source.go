// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Source of a controller delays its workers.
type Source struct {
	// Name is for logs.
	Name string
	// Begin gets the queue; nil for a source that only delays.
	Begin source.Func
	// Wait returns when the workers may begin.
	Wait func(ctx context.Context) error
}

// Start hands over the queue.
func (s Source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	if s.Begin == nil {
		return nil
	}
	return s.Begin(ctx, queue)
}

// WaitForSync delays the workers.
func (s Source) WaitForSync(ctx context.Context) error { return s.Wait(ctx) }

// String names the source in logs.
func (s Source) String() string { return s.Name }
