// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// applier carries out the actions of a plan: it writes autoscalers and replicas.
type applier struct {
	client    client.Client
	metrics   *controllerMetrics
	suspender suspender
	targets   *target.Targets
	worker    WorkerChanger
}

// apply carries out the actions and stops at the first failure.
//
// If the target is missing, unreadable or in a mesh, the status has no desiredReplicas: our autoscaler gets no metric
// and keeps the replicas.
func (a applier) apply(ctx context.Context, o plan.Observed, actions plan.Actions) plan.Result {
	result := plan.Unwritten(o, actions)
	switch {
	case actions.Restore != nil:
		return a.restore(ctx, o, *actions.Restore, result)
	case actions.Suspend != nil:
		if refused, err := a.rehearse(ctx, o); err != nil {
			result.Violation, result.ApplyFailed = refused, err
			return result // rather the other autoscaler than none
		}
		return a.suspender.suspend(ctx, o.Subject, *actions.Suspend, result)
	}
	if actions.RemoveAutoscaler {
		result.Autoscaler, result.ApplyFailed = a.removeAutoscaler(ctx, o.Policy, o.Autoscaler)
	}
	if actions.RemoveScaledObject && result.ApplyFailed == nil {
		result.ScaledObject, result.ApplyFailed = a.removeScaledObject(ctx, o.Subject, o.Autoscalers)
	}
	if result.ApplyFailed != nil {
		return result // never two writers at once
	}
	var refused *plan.Violation
	switch {
	case actions.Autoscaler != nil:
		result.Autoscaler, refused, result.ApplyFailed = a.applyAutoscaler(ctx, actions.Autoscaler, o.Autoscaler,
			actions.Reapply)
	case actions.ScaledObject != nil:
		result.ScaledObject, refused, result.ApplyFailed = a.applyScaledObject(ctx, actions.ScaledObject, o)
	}
	applied := result.ApplyFailed == nil && refused == nil
	if refused != nil {
		result.Violation, result.Refused = refused, true
	}
	if actions.MayScale(o, applied) {
		result.ScaleFailed = a.scale(ctx, o.Subject, *actions.Replicas)
	} else {
		a.targets.Workers.Withdraw(client.ObjectKeyFromObject(o.Policy))
	}
	if result.ScaleFailed == nil {
		result.ScaleFailed = a.updateFailed(o.Subject)
	}
	return result
}

// applyAutoscaler applies the wanted autoscaler if the live one differs or the apply is forced, and returns the live
// one or why the API server refuses.
func (a applier) applyAutoscaler(ctx context.Context,
	wanted, live *autoscalingv2.HorizontalPodAutoscaler, force bool,
) (*autoscalingv2.HorizontalPodAutoscaler, *plan.Violation, error) {
	name, current := wanted.Name, plan.AutoscalerIsCurrent(live, wanted)
	if current && !force {
		return live, nil, nil
	}
	answer, err := cluster.Apply(ctx, a.client, wanted)
	a.metrics.applies.WithLabelValues(applyResult(cluster.KindAutoscaler, err)).Inc()
	switch refused := applyRefusal(cluster.KindAutoscaler, name, err); {
	case refused != nil:
		return live, refused, nil
	case err != nil:
		return live, nil, fmt.Errorf("applying %s %s: %w", cluster.KindAutoscaler, name, err)
	}
	if !current {
		log.FromContext(ctx).Info("horizontal pod autoscaler applied", "horizontalPodAutoscaler", name)
	}
	var applied autoscalingv2.HorizontalPodAutoscaler
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, &applied); err != nil {
		return live, nil, fmt.Errorf("decoding %s %s: %w", cluster.KindAutoscaler, name, err)
	}
	return &applied, nil, nil
}

// rehearse makes a dry run of the autoscaler that follows a takeover, and returns why the API server did not admit it.
// A quota may admit it once the other autoscaler is gone, and a webhook may refuse dry runs alone.
func (a applier) rehearse(ctx context.Context, o plan.Observed) (*plan.Violation, error) {
	if o.Actuator.Type != v1alpha1.ActuatorHPA || o.Autoscaler != nil {
		return nil, nil //nolint:nilnil // no problem is a result
	}
	wanted := plan.HorizontalPodAutoscaler(o.Limited(), o.Target)
	_, err := cluster.Apply(ctx, a.client, wanted, client.DryRunAll)
	if err == nil || strings.Contains(err.Error(), "exceeded quota") ||
		strings.Contains(err.Error(), "does not support dry run") {
		return nil, nil //nolint:nilnil // no problem is a result
	}
	return cmp.Or(applyRefusal(cluster.KindAutoscaler, wanted.Name, err), plan.ScalingProblem(
		v1alpha1.ReasonTakeOverFailed, "retrying after an error: checking %s: %s", wanted.Name, err)), err
}

// applyResult is the label value of an apply.
func applyResult(kind string, err error) string {
	switch {
	case err == nil:
		return applyDone
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return applyConflict
	case isRefused(err), kind == cluster.KindScaledObject && isUndeclared(err):
		return applyRefused
	default:
		return applyError
	}
}

// applyRefusal is why the API server or a webhook rejects an apply; nil if a retry may help. The API server names the
// other manager and the fields.
func applyRefusal(kind, name string, err error) *plan.Violation {
	switch result := applyResult(kind, err); {
	case result == applyConflict:
		return plan.ScalingProblem(v1alpha1.ReasonFieldConflict,
			"another field manager owns fields of %s %s: delete it and the controller recreates it: %s", kind, name, err)
	case result == applyRefused && isUndeclared(err):
		return plan.ScalingProblem(v1alpha1.ReasonRefused, "this KEDA does not know a field of %s %s, which 2.21 does: "+
			"update KEDA with its CustomResourceDefinitions, or set actuator: HPA or Direct: %s", kind, name, err)
	case result == applyRefused:
		return plan.ScalingProblem(v1alpha1.ReasonRefused, "the API server refuses %s %s: %s", kind, name, err)
	default:
		return nil
	}
}

// isRefused reports whether the API server rejects the object, so that a retry does not help.
func isRefused(err error) bool {
	return !isTerminating(err) && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}

// isTerminating reports whether the namespace is being deleted: nothing can be created in it.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// removeAutoscaler deletes our autoscaler if the policy needs none, and returns what remains. It never deletes
// another's.
func (a applier) removeAutoscaler(ctx context.Context, p *v1alpha1.AutoscalingPolicy,
	live *autoscalingv2.HorizontalPodAutoscaler,
) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	if live == nil || live.DeletionTimestamp != nil || !metav1.IsControlledBy(live, p) {
		return live, nil
	}
	err := a.client.Delete(ctx, live, client.Preconditions{UID: &live.UID})
	if client.IgnoreNotFound(err) != nil {
		return live, fmt.Errorf("deleting HorizontalPodAutoscaler %s: %w", live.Name, err)
	}
	log.FromContext(ctx).Info("horizontal pod autoscaler deleted", "horizontalPodAutoscaler", live.Name)
	return nil, nil //nolint:nilnil // nothing is left
}
