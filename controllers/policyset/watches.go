// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

const (
	// controllerName names the controller in logs, events and controller-runtime's metrics.
	controllerName = "autoscalingpolicyset"
	// workers is how many sets are reconciled at once.
	workers = 2
	// reconcileTimeout bounds a reconcile: 1000 new policies are 125 writes in sequence.
	reconcileTimeout = 2 * time.Minute
	// statusDelay batches changes of the policies' statuses: a set of 1000 policies that always change is reconciled once
	// a second.
	statusDelay = time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// AddTo adds the reconciler and its watches to the manager. The objects of a kind are watched as soon as the kind
// exists.
func (r *Reconciler) AddTo(mgr manager.Manager, discovery cluster.Discovery) error {
	reader := mgr.GetCache()
	c, err := builder.ControllerManagedBy(mgr).
		Named(controllerName).
		Watches(&v1alpha1.AutoscalingPolicySet{}, enqueueSets[client.Object](reader),
			builder.WithPredicates(identityChanged())).
		Watches(&v1alpha1.AutoscalingPolicy{}, enqueueForPolicies(reader)).
		WatchesRawSource(cluster.Source{
			Name: "discovery of selectable kinds", // before the first check, a set would delete all its policies
			Wait: func(ctx context.Context) error { return discovery.WaitForSync(ctx, target.SelectableKinds()...) },
		}).
		WithOptions(cluster.ControllerOptions(workers, reconcileTimeout)).
		Build(r)
	if err != nil {
		return fmt.Errorf("building the controller of policy sets: %w", err)
	}
	for _, kind := range target.SelectableKinds() {
		discovery.OnSynced(kind, func() error {
			return c.Watch(source.Kind(reader, target.NewCached(kind),
				enqueueSets[*target.Cached](reader), selectionChanged()))
		})
	}
	return nil
}

// enqueueSets enqueues all sets of the object's namespace, and the object itself if it is a deleted set. There are few
// sets, and a reconcile of one that does not select the object writes nothing.
func enqueueSets[O client.Object](reader client.Reader) handler.TypedEventHandler[O, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object O) []reconcile.Request {
		requests := setsOf(ctx, reader, object.GetNamespace())
		if _, isSet := client.Object(object).(*v1alpha1.AutoscalingPolicySet); isSet {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		return requests
	})
}

// setsOf lists the sets of a namespace from the cache. After an error, they are reconciled within resyncEvery.
func setsOf(ctx context.Context, reader client.Reader, namespace string) []reconcile.Request {
	var list v1alpha1.AutoscalingPolicySetList
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items)+1)
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// setsOfPolicy lists the sets that a policy concerns: the one that owns it, or all that may select its target.
func setsOfPolicy(ctx context.Context, reader client.Reader, object client.Object) []reconcile.Request {
	p, ok := object.(*v1alpha1.AutoscalingPolicy)
	if !ok {
		return nil
	}
	if owner := set.Of(p); owner != nil {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: p.Namespace, Name: owner.Name}}}
	}
	return setsOf(ctx, reader, p.Namespace)
}

// enqueueForPolicies enqueues the sets that a policy concerns, after statusDelay when only its status changed.
func enqueueForPolicies(reader client.Reader) handler.EventHandler {
	enqueue := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, object := range objects {
			for _, request := range setsOfPolicy(ctx, reader, object) {
				q.Add(request)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, isBefore := e.ObjectOld.(*v1alpha1.AutoscalingPolicy)
			after, isAfter := e.ObjectNew.(*v1alpha1.AutoscalingPolicy)
			switch {
			case !isBefore || !isAfter:
			case identityChanged().Update(e):
				enqueue(ctx, q, before, after)
			case set.Of(after) != nil && readiness(before) != readiness(after):
				for _, request := range setsOfPolicy(ctx, reader, after) {
					q.AddAfter(request, statusDelay)
				}
			}
		},
	}
}

// identityChanged admits changes of the spec, labels, annotations, owners and deletion timestamp.
func identityChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) ||
			!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
			!reflect.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
	}}
}

// selectionChanged admits what a selection depends on: created and deleted objects, their labels and owners, the
// components of a FunctionMesh, and whether a StatefulSet runs an instance.
func selectionChanged() predicate.TypedPredicate[*target.Cached] {
	return predicate.TypedFuncs[*target.Cached]{UpdateFunc: func(
		e event.TypedUpdateEvent[*target.Cached],
	) bool {
		return !reflect.DeepEqual(target.Selectables(e.ObjectOld), target.Selectables(e.ObjectNew))
	}}
}

// readiness is what the set's status tells of a policy's: status, reason and message, and of which spec they are.
func readiness(p *v1alpha1.AutoscalingPolicy) [4]string {
	observed := strconv.FormatInt(set.ObservedGeneration(p), 10)
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return [4]string{string(c.Status), c.Reason, c.Message, observed}
	}
	return [4]string{3: observed}
}
