// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func (c *Capabilities) enqueueAll(ctx context.Context, logger logr.Logger,
	queue workqueue.TypedRateLimitingInterface[reconcile.Request],
) {
	var list v1alpha1.AutoscalingPolicyList
	if err := c.config.Policies.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		logger.Error(err, "listing policies: each is reconciled after its next poll")
		return
	}
	for i := range list.Items {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
}

// Source enqueues policies when capabilities change. It delays the workers until the first probe: otherwise a new
// leader would change the actuator of a policy, and change it back.
type Source struct{ Capabilities *Capabilities }

// Start sets the queue.
func (s Source) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.Capabilities.mu.Lock()
	defer s.Capabilities.mu.Unlock()
	s.Capabilities.queue = queue
	return nil
}

// WaitForSync waits for the first probe.
func (s Source) WaitForSync(ctx context.Context) error {
	select {
	case <-s.Capabilities.probed:
	case <-ctx.Done(): // stopping: probed is closed long before a timeout
	}
	return nil
}

// String names the source in logs.
func (s Source) String() string { return "capabilities of the cluster" }
