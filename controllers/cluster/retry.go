// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retryWithin is the longest pause between two reconciles that fail. Without a limit of ours it grows up to 17 minutes,
// and what failed that long waits as long after the cause has gone.
const retryWithin = time.Minute

// ControllerOptions are those of a controller with that many workers.
func ControllerOptions(workers int, timeout time.Duration) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers, ReconciliationTimeout: timeout,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, retryWithin),
	}
}
