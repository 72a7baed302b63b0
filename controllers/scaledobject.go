// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	return liveScaledObject(object)
}

func liveScaledObject(object *target.Cached) (*plan.LiveScaledObject, error) {
	if err := object.Invalid(); err != nil {
		return nil, fmt.Errorf("reading ScaledObject %s: %w", object.Name, err)
	}
	live := object.ScaledObject()
	live.Paused = plan.IsPaused(object.Annotations)
	live.PausedOut = plan.IsSet(object.Annotations, plan.AnnotationPausedOut)
	// KEDA would wake one that is kept awake.
	live.PausedIn = plan.IsSet(object.Annotations, plan.AnnotationPausedIn) ||
		plan.IsSet(object.Annotations, plan.AnnotationForced)
	return live, nil
}

// scaledObjectChanged reports whether the conditions or labels of a policy's ScaledObject changed.
func scaledObjectChanged(before, after *target.Cached) bool {
	return !reflect.DeepEqual(before.ScaledObject().Status, after.ScaledObject().Status) ||
		target.OwnedByPolicy(after) && !maps.Equal(before.Labels, after.Labels)
}

// applyScaledObject applies our ScaledObject if it differs, and returns the live one or why the API server or KEDA
// refuses.
func (a applier) applyScaledObject(ctx context.Context, wanted *plan.ScaledObjectConfiguration, o plan.Observed) (
	*plan.LiveScaledObject, *plan.Violation, error,
) {
	if plan.ScaledObjectIsCurrent(o.ScaledObject, wanted) {
		return o.ScaledObject, nil, nil
	}
	answer, err := cluster.Apply(ctx, a.client, wanted)
	a.metrics.applies.WithLabelValues(applyResult(cluster.KindScaledObject, err)).Inc()
	name := wanted.Metadata.Name
	switch refused := applyRefusal(cluster.KindScaledObject, name, err); {
	case refused != nil && !o.History.RecentlyDeleted(o.Now):
		return o.ScaledObject, refused, nil
	case err != nil:
		return o.ScaledObject, nil, fmt.Errorf("applying %s %s: %w", cluster.KindScaledObject, name, err)
	}
	log.FromContext(ctx).Info("scaled object applied", "scaledObject", name)
	applied, err := liveScaledObject(target.Decode(answer))
	if err != nil {
		return o.ScaledObject, nil, err
	}
	return applied, nil, nil
}

// isUndeclared reports whether the kind lacks a field. The API server has no reason of its own for that, but
// InternalError.
//
// Source: structured-merge-diff v6, typed/validate.go.
func isUndeclared(err error) bool {
	return err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

// errScaledObjectUnseen means that KEDA's HorizontalPodAutoscaler exists and its ScaledObject cannot be read.
var errScaledObjectUnseen = errors.New(
	"a HorizontalPodAutoscaler of KEDA scales the target for this policy, and ScaledObjects may not be seen: " +
		"grant the adapter get, list and watch on scaledobjects.keda.sh, as its ClusterRole does, or if KEDA is gone " +
		"delete the HorizontalPodAutoscaler")

// removeScaledObject deletes our ScaledObject if the policy needs none, and returns what remains: it stays until KEDA
// removes its finalizer. It never deletes another's.
func (a applier) removeScaledObject(ctx context.Context, s plan.Subject, known plan.Autoscalers) (
	*plan.LiveScaledObject, error,
) {
	live := known.ScaledObject
	if live == nil && known.KEDAAutoscaler != nil && !a.targets.Reader.Installed(cluster.KindScaledObject) {
		return nil, errScaledObjectUnseen
	}
	if live == nil || live.DeletionTimestamp != nil || !metav1.IsControlledBy(live, s.Policy) {
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
	gone.DeletionTimestamp = &metav1.Time{Time: s.Now}
	return &gone, nil
}
