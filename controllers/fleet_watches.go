// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// fleetControllerName names the controller in logs, events and controller-runtime's metrics.
	fleetControllerName = "autoscalingpolicy-fleet"
	// fleetWorkers is how many fleets are worked on at once.
	fleetWorkers = 2
	// fleetTimeout bounds a reconcile: at 1000 new children 125 writes after another.
	fleetTimeout = 2 * time.Minute
	// gatherChildrenFor is how long changes of the children's statuses are gathered, so that a fleet of 1000 that all
	// change all the time takes one reconcile a second.
	gatherChildrenFor = time.Second
)

// indexSelectedKind is the index of policies with a targetSelector by its kind.
const indexSelectedKind = "spec.targetSelector.kind"

func indexFleet(object client.Object) []string {
	p, ok := object.(*v1alpha1.AutoscalingPolicy)
	if !ok || p.Spec.TargetSelector == nil {
		return nil
	}
	return []string{string(p.Spec.TargetSelector.Kind)}
}

// selectedKinds are the kinds that a targetSelector may have.
func selectedKinds() []string { return append(cluster.WorkloadKinds(), cluster.KindStatefulSet) }

// watchFleets registers the reconciler of fleets and what wakes it. The objects of a kind reach it as soon as the kind
// exists, after the policies that name them.
func watchFleets(mgr manager.Manager, config Config, discovery cluster.Discovery) error {
	reconciler, err := NewFleetReconciler(FleetConfig{
		Client: mgr.GetClient(), Workloads: mgr.GetCache(), Installed: discovery.Installed,
		Recorder: mgr.GetEventRecorder(plan.FieldManager), Clock: config.Clock, Registerer: config.Registerer,
	})
	if err != nil {
		return err
	}
	c, err := builder.ControllerManagedBy(mgr).
		Named(fleetControllerName).
		Watches(&v1alpha1.AutoscalingPolicy{}, fleetsOfPolicies(mgr.GetCache())).
		WatchesRawSource(selectable{discovery}).
		WithOptions(controller.Options{MaxConcurrentReconciles: fleetWorkers, ReconciliationTimeout: fleetTimeout}).
		Build(reconciler)
	if err != nil {
		return fmt.Errorf("building the controller of fleets: %w", err)
	}
	for _, kind := range selectedKinds() {
		discovery.OnSynced(kind, func() error {
			return c.Watch(
				source.Kind(mgr.GetCache(), cluster.NewUnstructured(kind), fleetsOfWorkloads(mgr.GetCache()), selectionChanged()),
			)
		})
	}
	return nil
}

// fleetsOfWorkloads queues the fleets of the object's kind. There are few, and a reconcile of one that the object is
// not of writes nothing.
func fleetsOfWorkloads(reader client.Reader) handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context,
		object *unstructured.Unstructured,
	) []reconcile.Request {
		return fleetsOfKind(ctx, reader, object.GetNamespace(), object.GetKind())
	})
}

// selectionChanged admits what a selector depends on: objects that come and go, their labels, their owners, and of
// StatefulSets whether they run an instance.
func selectionChanged() predicate.TypedPredicate[*unstructured.Unstructured] {
	return predicate.TypedFuncs[*unstructured.Unstructured]{UpdateFunc: func(
		e event.TypedUpdateEvent[*unstructured.Unstructured],
	) bool {
		return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			!reflect.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences()) ||
			target.IsOfWorker(e.ObjectOld) != target.IsOfWorker(e.ObjectNew)
	}}
}

// fleetsOfPolicies queues the fleets that a policy concerns: itself, the one that it is a child of, and all of the kind
// that it names or selects. A changed status of a child has time.
func fleetsOfPolicies(reader client.Reader) handler.EventHandler {
	add := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
		objects ...client.Object,
	) {
		for _, object := range objects {
			for _, request := range fleetsOfPolicy(ctx, reader, object) {
				queue.Add(request)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request],
		) {
			add(ctx, queue, e.Object)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request],
		) {
			add(ctx, queue, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request],
		) {
			before, isBefore := e.ObjectOld.(*v1alpha1.AutoscalingPolicy)
			after, isAfter := e.ObjectNew.(*v1alpha1.AutoscalingPolicy)
			switch {
			case !isBefore || !isAfter:
			case identityChanged(before, after):
				add(ctx, queue, before, after)
			case plan.FleetOf(after) != nil && shown(before) != shown(after):
				for _, request := range fleetsOfPolicy(ctx, reader, after) {
					queue.AddAfter(request, gatherChildrenFor)
				}
			}
		},
	}
}

// fleetsOfPolicy lists the fleets that a policy concerns.
func fleetsOfPolicy(ctx context.Context, reader client.Reader, object client.Object) []reconcile.Request {
	p, ok := object.(*v1alpha1.AutoscalingPolicy)
	if !ok {
		return nil
	}
	if fleet := plan.FleetOf(p); fleet != nil {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: p.Namespace, Name: fleet.Name}}}
	}
	if p.Spec.TargetSelector == nil {
		return fleetsOfKind(ctx, reader, p.Namespace, p.Spec.ScaleTargetRef.Kind)
	}
	// The list does not have the one that is gone, or that had another kind.
	own := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}
	return append(fleetsOfKind(ctx, reader, p.Namespace, string(p.Spec.TargetSelector.Kind)), own)
}

// fleetsOfKind lists the policies that select objects of the kind. The list comes from the cache and cannot fail but
// for a missing index; what would be missed then comes within fleetAgain.
func fleetsOfKind(ctx context.Context, reader client.Reader, namespace, kind string) []reconcile.Request {
	var list v1alpha1.AutoscalingPolicyList
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{indexSelectedKind: kind},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items)+1)
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// identityChanged says that the policy is to be looked at at once: its spec, its labels and annotations, its owners, or
// its end.
func identityChanged(before, after *v1alpha1.AutoscalingPolicy) bool {
	return before.Generation != after.Generation ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		!reflect.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

// shownOfChild is the part of a child's status that the fleet's repeats.
type shownOfChild struct {
	current, desired       int32
	ready, reason, message string
}

func shown(p *v1alpha1.AutoscalingPolicy) shownOfChild {
	number := func(value *int32) int32 {
		if value == nil {
			return -1
		}
		return *value
	}
	s := shownOfChild{current: number(p.Status.CurrentReplicas), desired: number(p.Status.DesiredReplicas)}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		s.ready, s.reason, s.message = string(c.Status), c.Reason, c.Message
	}
	return s
}

// selectable holds the workers back until it is known which objects there are: else all children would be removed at
// every start.
type selectable struct{ discovery cluster.Discovery }

// Start has nothing to watch.
func (selectable) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

// WaitForSync waits for the first look for every kind.
func (s selectable) WaitForSync(ctx context.Context) error {
	return s.discovery.WaitForSync(ctx, selectedKinds()...)
}

// String names the source in logs.
func (selectable) String() string { return "discovery of selectable kinds" }
