// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// ownScaledObject reads the ScaledObject of our name from the cache; nil when there is none.
func ownScaledObject(ctx context.Context, reader *target.Reader, p *v1alpha1.AutoscalingPolicy) (*plan.LiveScaledObject,
	error,
) {
	object, err := reader.Object(ctx, cluster.KindScaledObject, p.Namespace, plan.AutoscalerName(p.Name))
	if err != nil || object == nil {
		return nil, err
	}
	return decodeScaledObject(object)
}

func decodeScaledObject(object *unstructured.Unstructured) (*plan.LiveScaledObject, error) {
	var live plan.LiveScaledObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &live); err != nil {
		return nil, fmt.Errorf("decoding ScaledObject %s: %w", object.GetName(), err)
	}
	annotations := object.GetAnnotations()
	live.Paused = isPaused(object)
	live.PausedOut = isSet(annotations, cluster.AnnotationPausedOut)
	// One that is kept awake is not to be taken to zero either: KEDA would wake it again.
	live.PausedIn = isSet(annotations, cluster.AnnotationPausedIn) || isSet(annotations, cluster.AnnotationForced)
	return &live, nil
}

// kedaConditions are what KEDA says of a ScaledObject that was made for a policy; nil of others, of which it is not
// kept.
func kedaConditions(object *unstructured.Unstructured) any {
	if object.GetKind() != cluster.KindScaledObject || !target.OwnedByPolicy(object) {
		return nil
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	return conditions
}

// scaledObjectSays says that what KEDA says, or what a label says, changed of one that was made for a policy.
func scaledObjectSays(before, after *unstructured.Unstructured) bool {
	return !reflect.DeepEqual(kedaConditions(before), kedaConditions(after)) ||
		target.OwnedByPolicy(after) && !reflect.DeepEqual(before.GetLabels(), after.GetLabels())
}

// applyScaledObject makes our ScaledObject what is wanted, if it is not, and returns it; or why the API server or KEDA
// refuses.
func (a applier) applyScaledObject(ctx context.Context, wanted *plan.ScaledObjectConfiguration, o plan.Observed) (
	*plan.LiveScaledObject, *plan.Violation, error,
) {
	if plan.ScaledObjectIsCurrent(o.ScaledObject, wanted) {
		return o.ScaledObject, nil, nil
	}
	applied, err := a.writeScaledObject(ctx, wanted)
	refused := scaledObjectRefused(wanted.Metadata.Name, err)
	switch {
	case err == nil:
		return applied, nil, nil
	case refused == nil || o.RecentlyDeleted():
		return o.ScaledObject, nil, fmt.Errorf("applying ScaledObject %s: %w", wanted.Metadata.Name, err)
	default:
		return o.ScaledObject, refused, nil
	}
}

// writeScaledObject returns what the API server made of it.
func (a applier) writeScaledObject(ctx context.Context,
	wanted *plan.ScaledObjectConfiguration,
) (*plan.LiveScaledObject, error) {
	fields, err := wanted.Fields()
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: fields}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(plan.FieldManager)); err != nil {
		a.metrics.applies.WithLabelValues(applyResult(err)).Inc()
		return nil, err
	}
	a.metrics.applies.WithLabelValues(applyDone).Inc()
	log.FromContext(ctx).Info("scaled object applied", "scaledObject", wanted.Metadata.Name)
	return decodeScaledObject(object)
}

// scaledObjectRefused is why the API server, or KEDA's webhook, does not take it; nil where trying again may help.
func scaledObjectRefused(name string, err error) *plan.Violation {
	switch applyResult(err) {
	case applyConflict:
		return fieldConflict(cluster.KindScaledObject+" "+name, err)
	case applyRefused:
		if isUndeclared(err) {
			return &plan.Violation{
				Condition: v1alpha1.ConditionAutoscalerApplied, Reason: v1alpha1.ReasonRefused,
				Message: fmt.Sprintf("this KEDA does not know a field of %s %s, which 2.21 does: update KEDA with its "+
					"CustomResourceDefinitions, or set actuator: HPA or Direct: %s",
					cluster.KindScaledObject, name, err),
			}
		}
		return applyIsRefused(cluster.KindScaledObject+" "+name, err)
	default:
		return nil
	}
}

// applyResult of an apply that failed, as a label value.
func applyResult(err error) string {
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return applyConflict
	case isRefused(err) || isUndeclared(err):
		return applyRefused
	default:
		return applyError
	}
}

// isUndeclared says that the kind has no such field. The API server has no reason of its own for that: it says
// InternalError.
//
// Source: structured-merge-diff v6, typed/validate.go.
func isUndeclared(err error) bool {
	return err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

// errScaledObjectUnseen is why nothing is done where KEDA's HorizontalPodAutoscaler is there and its ScaledObject may
// not be seen.
var errScaledObjectUnseen = errors.New(
	"a HorizontalPodAutoscaler of KEDA scales the target for this policy, and ScaledObjects may not be seen: " +
		"grant the adapter get, list and watch on scaledobjects.keda.sh, as its ClusterRole does, or if KEDA is gone " +
		"delete the HorizontalPodAutoscaler")

// removeScaledObject deletes ours where the policy does without, never one that is not ours, and returns
// what is left: it stays until KEDA removes its finalizer.
func (a applier) removeScaledObject(ctx context.Context, observed plan.Observed) (*plan.LiveScaledObject, error) {
	live := observed.ScaledObject
	if live == nil && observed.KEDAAutoscaler != nil && !a.seesScaledObjects() {
		return nil, errScaledObjectUnseen
	}
	if live == nil || live.DeletionTimestamp != nil || !metav1.IsControlledBy(live, observed.Policy) {
		return live, nil
	}
	object := cluster.NewUnstructured(cluster.KindScaledObject)
	object.SetNamespace(live.Namespace)
	object.SetName(live.Name)
	err := a.client.Delete(ctx, object, client.Preconditions{UID: &live.UID})
	if client.IgnoreNotFound(err) != nil {
		return live, fmt.Errorf("deleting ScaledObject %s: %w", live.Name, err)
	}
	log.FromContext(ctx).Info("scaled object deleted", "scaledObject", live.Name)
	gone := *live
	gone.DeletionTimestamp = &metav1.Time{Time: observed.Now}
	return &gone, nil
}
