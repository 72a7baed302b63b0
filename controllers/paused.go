// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// AnnotationAllPaused on the Lease of the leader election pauses all policies. Its value is a text for users, such as
// why; false means that it is not set. The adapter reads and watches that object anyway, and a renewal keeps
// annotations.
const AnnotationAllPaused = v1alpha1.Group + "/paused"

// allPaused is why all policies are paused; empty if they are not, or without a Lease.
func (o observer) allPaused(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	key := o.config.Lease
	if key.Name == "" {
		return "", nil
	}
	if err := o.config.Client.Get(ctx, key, &lease, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading Lease %s: %w", key, err)
	}
	if !plan.IsSet(lease.Annotations, AnnotationAllPaused) {
		return "", nil
	}
	why := backlog.Quote(cmp.Or(lease.Annotations[AnnotationAllPaused], "true"))
	return fmt.Sprintf("all policies are paused (%s): the backlog is measured, and nothing is decided or changed. "+
		"To resume: kubectl -n %s annotate lease %s %s-", why, key.Namespace, key.Name, AnnotationAllPaused), nil
}

// allPausedChanged admits the changes of the annotation on the Lease, which is renewed every few seconds.
func allPausedChanged(lease types.NamespacedName) predicate.Predicate {
	value := func(object client.Object) (text string) {
		if client.ObjectKeyFromObject(object) == lease && plan.IsSet(object.GetAnnotations(), AnnotationAllPaused) {
			text = "paused: " + object.GetAnnotations()[AnnotationAllPaused]
		}
		return text
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return value(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool { return value(e.ObjectOld) != value(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return value(e.Object) != "" },
	}
}

// everyPolicy enqueues all policies, at an event of the Lease or of the cluster's capabilities.
func everyPolicy(reader client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		if _, isLease := object.(*coordinationv1.Lease); isLease {
			log.FromContext(ctx).Info("all policies are paused or resume", "annotation",
				object.GetAnnotations()[AnnotationAllPaused])
		}
		return listed(ctx, reader)
	})
}
