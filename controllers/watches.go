// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"
	"reflect"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// siblings enqueues every policy that scales the target of one that was created or deleted: the oldest of them may have
// changed. The policy itself is among them, and is enqueued by name once it is deleted.
func siblings(reader client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		requests := []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
		if p, ok := object.(*v1alpha1.AutoscalingPolicy); ok && p.Spec.PulsarFunctionRef.Name != "" {
			same := client.MatchingFields{target.IndexScaleTarget: target.Keys(p)[0]}
			return append(requests, listed(ctx, reader, same)...) // a function of a worker belongs to no namespace
		}
		return append(requests, policiesOf(ctx, reader, object.GetNamespace(), target.IndexPolicy(object))...)
	})
}

// autoscalerUsers enqueues the policies of the target of a HorizontalPodAutoscaler: its owner, or those it conflicts
// with.
func autoscalerUsers(reader client.Reader) handler.EventHandler {
	return users(reader, func(object client.Object) []string {
		hpa, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
		if !ok {
			return nil
		}
		ref := hpa.Spec.ScaleTargetRef
		return append(replicasOf(target.Key(ref.APIVersion, ref.Kind, ref.Name), ref.Kind, ref.Name),
			target.NameKey(hpa.Name))
	})
}

// users enqueues the policies in the object's namespace that have one of its keys.
func users[O client.Object](reader client.Reader,
	keys func(O) []string,
) handler.TypedEventHandler[O, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object O) []reconcile.Request {
		return policiesOf(ctx, reader, object.GetNamespace(), keys(object))
	})
}

// workloadUsers enqueues the policies that scale the object, or the object's own target.
func workloadUsers(reader client.Reader) handler.TypedEventHandler[*target.Cached, reconcile.Request] {
	return users(reader, concerns)
}

// concerns are the keys of the targets that an object is or scales, and of the policy that owns an autoscaler of its
// name.
func concerns(object *target.Cached) []string {
	kind, own := object.Kind, target.NameKey(object.Name)
	switch kind {
	case cluster.KindScaledObject, cluster.KindVerticalPodAutoscaler:
		ref := object.ScaleTarget()
		if ref == nil {
			return []string{own}
		}
		return append(replicasOf(target.Key(ref.APIVersion, ref.Kind, ref.Name), ref.Kind, ref.Name), own)
	case cluster.KindStatefulSet, cluster.KindDeployment:
		return replicasOf(target.Key("apps/v1", kind, object.Name), kind, object.Name)
	default:
		return []string{workloadTarget(kind, object.Name)}
	}
}

// replicasOf are the keys of all objects that share an object's replicas: for a StatefulSet, itself and the object that
// Function Mesh created it for.
func replicasOf(key, kind, name string) []string {
	if kind == cluster.KindStatefulSet {
		if workload, name := cluster.WorkloadOf(name); workload != "" {
			return []string{key, workloadTarget(workload, name)}
		}
	}
	return []string{key}
}

// workloadTarget is the key of target.IndexScaleTarget for an object of Function Mesh.
func workloadTarget(kind, name string) string {
	return target.Key(cluster.WorkloadGVK(kind).GroupVersion().String(), kind, name)
}

// policiesOf lists the policies with one of the keys.
func policiesOf(ctx context.Context, reader client.Reader, namespace string, keys []string) []reconcile.Request {
	var requests []reconcile.Request
	for _, key := range keys {
		requests = append(requests, listed(ctx, reader, client.InNamespace(namespace),
			client.MatchingFields{target.IndexScaleTarget: key})...)
	}
	return requests
}

// listed lists policies from the cache.
func listed(ctx context.Context, reader client.Reader, options ...client.ListOption) []reconcile.Request {
	var list v1alpha1.AutoscalingPolicyList
	if err := reader.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "listing policies: each is reconciled after its next poll")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// policyChanged admits changes of the spec and deletion in the foreground, and drops our own status writes.
func policyChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
	})
}

// autoscalerChanged admits changes that a policy's status or conflicts depend on. A HorizontalPodAutoscaler has no
// generation, and its status changes at every sync, every 15 s.
func autoscalerChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isBefore := e.ObjectOld.(*autoscalingv2.HorizontalPodAutoscaler)
		after, isAfter := e.ObjectNew.(*autoscalingv2.HorizontalPodAutoscaler)
		if !isBefore || !isAfter {
			return false
		}
		return !equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
			!maps.Equal(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
			scalingActive(before) != scalingActive(after)
	}}
}

// scalingActive is the part of a HorizontalPodAutoscaler's status that a policy's status repeats.
func scalingActive(hpa *autoscalingv2.HorizontalPodAutoscaler) [3]string {
	for _, c := range hpa.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive {
			return [3]string{string(c.Status), c.Reason, c.Message}
		}
	}
	return [3]string{}
}

// workloadChanged admits changes of the spec, the annotations, the owners and the rollout; Function Mesh writes the
// status several times at every change.
func workloadChanged() predicate.TypedPredicate[*target.Cached] {
	return predicate.TypedFuncs[*target.Cached]{UpdateFunc: func(
		e event.TypedUpdateEvent[*target.Cached],
	) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
			!reflect.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences()) ||
			e.ObjectOld.Rollout() != e.ObjectNew.Rollout() ||
			scaledObjectChanged(e.ObjectOld, e.ObjectNew)
	}}
}

// notifications are the poller's events. Workers wait until Functions, Sinks and Sources are discovered: otherwise
// every policy would be reported without a target at every start.
func notifications(interest *interest, discovery cluster.Discovery) cluster.Source {
	return cluster.Source{
		Name: "notifications of the poller", Begin: interest.start,
		Wait: func(ctx context.Context) error { return discovery.WaitForSync(ctx, cluster.CachedKinds()...) },
	}
}

// capabilityChanges enqueues every policy when the capabilities of the cluster change.
func capabilityChanges(capabilities *cluster.Capabilities, every handler.EventHandler) cluster.Source {
	return cluster.Source{
		Name: "capabilities of the cluster", Wait: capabilities.WaitForProbe,
		Begin: func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			capabilities.OnChange(func() {
				every.Generic(ctx, event.GenericEvent{Object: &v1alpha1.AutoscalingPolicy{}}, queue)
			})
			return nil
		},
	}
}
