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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// carryOut writes what the plan says and notes in the outcome what became of it.
//
// For a target that is missing, in a mesh or unreadable the status has no desiredReplicas, so ours gets no metric and
// keeps the replicas.
func (r *PolicyReconciler) carryOut(ctx context.Context, actions plan.Actions, outcome *plan.Outcome,
	memory *policyMemory,
) {
	p := outcome.Observed.Policy
	if actions.RemoveAutoscaler {
		before := outcome.Observed.Autoscaler
		if outcome.ApplyFailed = r.removeAutoscaler(ctx, outcome); outcome.ApplyFailed != nil {
			return // two writers at once would be one too many
		}
		if before != nil {
			memory.handedOverAt = outcome.Now
		}
	}
	if actions.RemoveScaledObject {
		if outcome.ApplyFailed = r.removeScaledObject(ctx, outcome); outcome.ApplyFailed != nil {
			return
		}
	}
	if actions.OwnReplicas != nil {
		if outcome.ScaleFailed = r.writeOwnReplicas(ctx, p, *actions.OwnReplicas); outcome.ScaleFailed != nil {
			return
		}
	}
	if actions.Autoscaler != nil {
		if outcome.ApplyFailed = r.keepAutoscaler(ctx, actions, outcome, memory); outcome.ApplyFailed != nil ||
			outcome.Violation != nil {
			return
		}
	}
	if actions.ScaledObject != nil {
		if outcome.ApplyFailed = r.keepScaledObject(ctx, actions, outcome, memory); outcome.ApplyFailed != nil ||
			outcome.Violation != nil {
			return
		}
	}
	if actions.Replicas != nil {
		outcome.ScaleFailed = r.scale(ctx, outcome.Observed, *actions.Replicas)
	}
}

func decisionOf(result *plan.Result) *policy.Decision {
	if result == nil {
		return nil
	}
	return &result.Decision
}

// keepAutoscaler makes our autoscaler what it should be.
func (r *PolicyReconciler) keepAutoscaler(ctx context.Context, actions plan.Actions, outcome *plan.Outcome,
	memory *policyMemory,
) error {
	p := outcome.Observed.Policy
	switch {
	case errors.Is(outcome.Unknown, backlog.ErrNoData) && p.Status.DesiredReplicas == nil:
		return nil // the first answer is under way for a second or two; an autoscaler without a metric only complains
	case memory.refused.stands(p, met(outcome), outcome.Now):
		outcome.Violation = &memory.refused.violation
		return nil
	}
	anew := memory.toleranceDue(outcome.Observed.Autoscaler, outcome.Now)
	live, violation, err := r.apply(ctx, actions.Autoscaler, outcome.Observed.Autoscaler, anew)
	if err != nil {
		return err
	}
	memory.refused = nil
	if violation != nil {
		memory.refused = &refusal{
			violation: *violation, at: outcome.Now, generation: p.Generation, met: met(outcome),
		}
		outcome.Violation = violation
		return nil
	}
	outcome.Observed.Autoscaler = live
	return nil
}

// apply makes the live autoscaler what is wanted, if it is not or when asked to do it anew, and returns it; or why the
// API server refuses.
func (r *PolicyReconciler) apply(ctx context.Context, wanted *acautoscalingv2.HorizontalPodAutoscalerApplyConfiguration,
	live *autoscalingv2.HorizontalPodAutoscaler, anew bool,
) (*autoscalingv2.HorizontalPodAutoscaler, *plan.Violation, error) {
	name := *wanted.Name
	current, err := plan.AutoscalerIsCurrent(live, wanted)
	if err != nil || (current && !anew) {
		return live, nil, err
	}
	err = r.config.Client.Apply(ctx, wanted, client.FieldOwner(plan.FieldManager))
	switch {
	case err == nil:
		r.metrics.applies.WithLabelValues(applyDone).Inc()
		if !current {
			log.FromContext(ctx).Info("horizontal pod autoscaler applied", "horizontalPodAutoscaler", name)
		}
		applied, err := plan.DecodeAutoscaler(wanted) // which is the API server's answer by now
		return applied, nil, err
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		r.metrics.applies.WithLabelValues(applyConflict).Inc()
		return nil, fieldConflict(kindAutoscaler+" "+name, err), nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		r.metrics.applies.WithLabelValues(applyRefused).Inc()
		return nil, applyIsRefused(kindAutoscaler+" "+name, err), nil
	default:
		r.metrics.applies.WithLabelValues(applyError).Inc()
		return nil, nil, fmt.Errorf("applying HorizontalPodAutoscaler %s: %w", name, err)
	}
}

// fieldConflict: the API server's words name the other manager and the fields.
func fieldConflict(what string, err error) *plan.Violation {
	return &plan.Violation{
		Condition: v1alpha1.ConditionAutoscalerApplied, Reason: v1alpha1.ReasonFieldConflict,
		Message: fmt.Sprintf("somebody else manages fields of %s, delete it and it is made anew: %s", what, err),
	}
}

func applyIsRefused(what string, err error) *plan.Violation {
	return &plan.Violation{
		Condition: v1alpha1.ConditionAutoscalerApplied, Reason: v1alpha1.ReasonRefused,
		Message: fmt.Sprintf("the API server refuses %s: %s", what, err),
	}
}

// removeAutoscaler deletes our autoscaler where the policy does without, and never one that is not ours.
func (r *PolicyReconciler) removeAutoscaler(ctx context.Context, outcome *plan.Outcome) error {
	live := outcome.Observed.Autoscaler
	if live == nil || live.DeletionTimestamp != nil || !metav1.IsControlledBy(live, outcome.Observed.Policy) {
		return nil
	}
	err := r.config.Client.Delete(ctx, live, client.Preconditions{UID: &live.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting HorizontalPodAutoscaler %s: %w", live.Name, err)
	}
	log.FromContext(ctx).Info("horizontal pod autoscaler deleted", "horizontalPodAutoscaler", live.Name)
	outcome.Observed.Autoscaler = nil
	return nil
}
