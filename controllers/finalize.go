// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

// maxCleanupAttempts bounds how often the controller tries to restore what a deleted policy suspended: one minute.
const maxCleanupAttempts = 30

// errOursStays is why nothing was restored although no request failed.
var errOursStays = errors.New(
	"the autoscaler of the policy is still there, and what is restored would conflict with it")

// finalize restores what a deleted policy suspended and then removes the finalizer: after success, after an error that
// lasts, or after maxCleanupAttempts. Replicas do not change.
func (r *PolicyReconciler) finalize(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (string, error) {
	memory := r.memories.of(p, r.config.Clock())
	key := client.ObjectKeyFromObject(p)
	r.interest.follow(key, nil)
	r.pipelines.forget(key)
	if p.Status.TakenOver != nil && r.applier.suspender.namespaceEnds(ctx, p) {
		return resultGone, r.removeFinalizer(ctx, p) // at once: the right to do so may go with the namespace
	}
	now := r.config.Clock()
	if !memory.cleanedUpAt.IsZero() {
		if now.Sub(memory.cleanedUpAt) < soon {
			return resultRestoring, nil // the policy that takes over has to observe what was restored
		}
		return resultGone, r.removeFinalizer(ctx, p)
	}
	memory.cleanupAttempts++
	restored, err := r.restoreDeleted(ctx, p)
	if isTerminating(err) {
		return resultGone, r.removeFinalizer(ctx, p) // what was suspended is deleted too
	}
	var lasting lastingError
	if !restored && !errors.As(err, &lasting) && memory.cleanupAttempts < maxCleanupAttempts {
		if err != nil {
			log.FromContext(ctx).Info("retrying to restore autoscalers", "why", err.Error())
		}
		return resultRestoring, nil
	}
	if !restored && err == nil {
		err = errOursStays
	}
	if err != nil {
		recordEvent(ctx, r.config.Recorder, p, report.Event{
			Type: corev1.EventTypeWarning, Reason: reasonRestoreFailed, Action: "Restore",
			Note: "the policy is deleted anyway, restore the autoscalers in status.takenOver manually: " + err.Error(),
		})
	}
	if p.Status.TakenOver != nil {
		memory.cleanedUpAt = now
		return resultRestoring, nil
	}
	return resultGone, r.removeFinalizer(ctx, p)
}

// namespaceEnds reports whether the namespace of the policy is being deleted, with all that was suspended. Only a
// create tells, here a dry run, which creates nothing: namespaces themselves may not be read.
func (s suspender) namespaceEnds(ctx context.Context, p *v1alpha1.AutoscalingPolicy) bool {
	probe := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: "pap-probe-"},
	}
	return isTerminating(s.client.Create(ctx, probe, client.DryRunAll, client.FieldOwner(plan.FieldManager)))
}

// restoreDeleted reports whether everything that a deleted policy suspended is restored.
func (r *PolicyReconciler) restoreDeleted(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (bool, error) {
	observed, err := r.observer.observe(ctx, p, r.config.Clock())
	if err != nil {
		return false, err
	}
	result := r.applier.apply(ctx, observed, plan.New(observed, nil))
	return result.Restored, result.ApplyFailed
}

// removeFinalizer removes our finalizer from a deleted policy, which keeps it here until the cache shows that it is
// gone: nothing is restored again, and the policy that follows then sees what was restored.
func (r *PolicyReconciler) removeFinalizer(ctx context.Context, p *v1alpha1.AutoscalingPolicy) error {
	return r.applier.suspender.setFinalizers(ctx, p.DeepCopy(), withoutFinalizer(p))
}
