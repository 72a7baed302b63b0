// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	acautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// applier carries out the actions of a plan: it writes autoscalers and replicas.
type applier struct {
	client  client.Client
	metrics *controllerMetrics
	scalers map[plan.Scaling]scaler
	// seesScaledObjects says that KEDA's ScaledObjects can be read.
	seesScaledObjects func() bool
}

// apply carries out the actions, and ends at the first that fails.
//
// For a target that is missing, in a mesh or unreadable the status has no desiredReplicas, so ours gets no metric and
// keeps the replicas.
func (a applier) apply(ctx context.Context, actions plan.Actions, o plan.Outcome, memory *policyMemory) plan.Result {
	result := plan.Result{Autoscaler: o.Observed.Autoscaler, ScaledObject: o.Observed.ScaledObject}
	if actions.RemoveAutoscaler {
		if result.Autoscaler, result.ApplyFailed = a.removeAutoscaler(ctx, o.Observed); result.ApplyFailed != nil {
			return result // two writers at once would be one too many
		}
		if o.Observed.Autoscaler != nil {
			memory.handedOverAt = o.Now
		}
	}
	if actions.RemoveScaledObject {
		result.ScaledObject, result.ApplyFailed = a.removeScaledObject(ctx, o.Observed, o.Now)
		if result.ApplyFailed != nil {
			return result
		}
	}
	switch {
	case actions.Autoscaler != nil:
		result.Autoscaler, result.Violation, result.ApplyFailed = a.keepAutoscaler(ctx, actions.Autoscaler, o, memory)
	case actions.ScaledObject != nil:
		result.ScaledObject, result.Violation, result.ApplyFailed = a.keepScaledObject(ctx, actions.ScaledObject, o, memory)
	}
	if actions.Replicas != nil && result.ApplyFailed == nil && result.Violation == nil {
		result.ScaleFailed = a.scale(ctx, o.Observed, *actions.Replicas)
	}
	return result
}

func decisionOf(evaluation *plan.Evaluation) *policy.Decision {
	if evaluation == nil {
		return nil
	}
	return &evaluation.Decision
}

// keepAutoscaler makes our autoscaler what it should be, and returns it; or why the API server refuses.
func (a applier) keepAutoscaler(ctx context.Context,
	wanted *acautoscalingv2.HorizontalPodAutoscalerApplyConfiguration, o plan.Outcome, memory *policyMemory,
) (*autoscalingv2.HorizontalPodAutoscaler, *plan.Violation, error) {
	p, live := o.Observed.Policy, o.Observed.Autoscaler
	switch {
	case errors.Is(o.Unknown, backlog.ErrNoData) && p.Status.DesiredReplicas == nil:
		// The first answer is under way for a second or two; an autoscaler without a metric only complains.
		return live, nil, nil
	case memory.refused.stands(p, met(o), o.Now):
		return live, &memory.refused.violation, nil
	}
	applied, violation, err := a.applyAutoscaler(ctx, wanted, live, memory.toleranceDue(live, o.Now))
	if err != nil {
		return live, nil, err
	}
	memory.refused = nil
	if violation != nil {
		memory.refused = &refusal{violation: *violation, at: o.Now, generation: p.Generation, met: met(o)}
		return live, violation, nil
	}
	return applied, nil, nil
}

// applyAutoscaler makes the live autoscaler what is wanted, if it is not or when asked to do it anew, and returns it;
// or why the API server refuses.
func (a applier) applyAutoscaler(ctx context.Context,
	wanted *acautoscalingv2.HorizontalPodAutoscalerApplyConfiguration,
	live *autoscalingv2.HorizontalPodAutoscaler, anew bool,
) (*autoscalingv2.HorizontalPodAutoscaler, *plan.Violation, error) {
	name := *wanted.Name
	current, err := plan.AutoscalerIsCurrent(live, wanted)
	if err != nil || (current && !anew) {
		return live, nil, err
	}
	err = a.client.Apply(ctx, wanted, client.FieldOwner(plan.FieldManager))
	switch {
	case err == nil:
		a.metrics.applies.WithLabelValues(applyDone).Inc()
		if !current {
			log.FromContext(ctx).Info("horizontal pod autoscaler applied", "horizontalPodAutoscaler", name)
		}
		applied, err := plan.DecodeAutoscaler(wanted) // which is the API server's answer by now
		return applied, nil, err
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		a.metrics.applies.WithLabelValues(applyConflict).Inc()
		return nil, fieldConflict(cluster.KindAutoscaler+" "+name, err), nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		a.metrics.applies.WithLabelValues(applyRefused).Inc()
		return nil, applyIsRefused(cluster.KindAutoscaler+" "+name, err), nil
	default:
		a.metrics.applies.WithLabelValues(applyError).Inc()
		return nil, nil, fmt.Errorf("applying HorizontalPodAutoscaler %s: %w", name, err)
	}
}

// fieldConflict: the API server's words name the other manager and the fields.
func fieldConflict(what string, err error) *plan.Violation {
	return &plan.Violation{
		Condition: v1alpha1.ConditionAutoscalerApplied, Reason: v1alpha1.ReasonFieldConflict,
		Message: fmt.Sprintf("another field manager owns fields of %s: delete it and the controller recreates it: %s",
			what, err),
	}
}

func applyIsRefused(what string, err error) *plan.Violation {
	return &plan.Violation{
		Condition: v1alpha1.ConditionAutoscalerApplied, Reason: v1alpha1.ReasonRefused,
		Message: fmt.Sprintf("the API server refuses %s: %s", what, err),
	}
}

// removeAutoscaler deletes our autoscaler where the policy does without, never one that is not ours, and returns what
// is left.
func (a applier) removeAutoscaler(ctx context.Context, observed plan.Observed) (
	*autoscalingv2.HorizontalPodAutoscaler, error,
) {
	live := observed.Autoscaler
	if live == nil || live.DeletionTimestamp != nil || !metav1.IsControlledBy(live, observed.Policy) {
		return live, nil
	}
	err := a.client.Delete(ctx, live, client.Preconditions{UID: &live.UID})
	if client.IgnoreNotFound(err) != nil {
		return live, fmt.Errorf("deleting HorizontalPodAutoscaler %s: %w", live.Name, err)
	}
	log.FromContext(ctx).Info("horizontal pod autoscaler deleted", "horizontalPodAutoscaler", live.Name)
	return nil, nil //nolint:nilnil // nothing is left
}
