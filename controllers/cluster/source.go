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

// enqueueAll queues every policy; each is in the queue once at most.
func (a *Capabilities) enqueueAll(ctx context.Context, logger logr.Logger,
	queue workqueue.TypedRateLimitingInterface[reconcile.Request],
) {
	var list v1alpha1.AutoscalingPolicyList
	if err := a.config.Policies.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		logger.Error(err, "listing policies: they follow at their next poll")
		return
	}
	for i := range list.Items {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
}

// Source is the source of changes for the controller, and holds its workers back until the cluster was looked at
// once: else a new leader would change who writes the replicas, and change it back.
type Source struct{ Capabilities *Capabilities }

// Start hands over the queue.
func (n Source) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	n.Capabilities.mu.Lock()
	defer n.Capabilities.mu.Unlock()
	n.Capabilities.queue = queue
	return nil
}

// WaitForSync waits for the first look.
func (n Source) WaitForSync(ctx context.Context) error {
	select {
	case <-n.Capabilities.probed:
	case <-ctx.Done(): // stopping; it ends by itself long before a time-out
	}
	return nil
}

// String names the source in logs.
func (n Source) String() string { return "news of the cluster's capabilities" }
