// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

// restore restores what was suspended. It deletes our autoscaler first and waits until that is gone, so that two never
// coexist.
func (a applier) restore(ctx context.Context, o plan.Observed, back plan.Restoration, result plan.Result) plan.Result {
	var err error
	if back.RemoveOurs {
		_, hpaErr := a.removeAutoscaler(ctx, o.Policy, o.Autoscaler)
		_, objectErr := a.removeScaledObject(ctx, o.Subject, o.Autoscalers)
		err = errors.Join(hpaErr, objectErr)
	} else {
		err = a.suspender.restore(ctx, o.Subject, back)
	}
	if err != nil {
		result.ApplyFailed = err
		result.Violation = plan.ScalingProblem(v1alpha1.ReasonRestoring, "retrying after an error: %s", err)
		return result
	}
	result.Restored = !back.RemoveOurs
	return result
}

// restore restores everything and records events. A deleted policy keeps its record and finalizer until other policies
// have observed the target.
func (s suspender) restore(ctx context.Context, subject plan.Subject, back plan.Restoration) error {
	restored, err := s.applyRestoration(ctx, subject, back)
	if err != nil {
		return err
	}
	p := subject.Policy
	if len(restored) > 0 {
		recordEvent(ctx, s.recorder, p, report.Event{
			Type: corev1.EventTypeNormal, Reason: reasonRestored, Action: "Restore", Note: strings.Join(restored, ", "),
		})
	}
	if len(back.Kept) > 0 {
		recordEvent(ctx, s.recorder, p, report.Event{
			Type: corev1.EventTypeWarning, Reason: reasonNotRestored, Action: "Keep", Note: strings.Join(back.Kept, "; "),
		})
	}
	if p.DeletionTimestamp != nil {
		return nil
	}
	if err := s.setTakenOver(ctx, p, nil); err != nil {
		return err
	}
	return s.setFinalizers(ctx, p, withoutFinalizer(p))
}

// withoutFinalizer returns the policy's finalizers without ours.
func withoutFinalizer(p *v1alpha1.AutoscalingPolicy) []string {
	return slices.DeleteFunc(slices.Clone(p.Finalizers), func(name string) bool { return name == plan.Finalizer })
}

// applyRestoration returns what was restored, and fails if anything was not.
func (s suspender) applyRestoration(ctx context.Context, subject plan.Subject, back plan.Restoration) (
	[]string, error,
) {
	p := subject.Policy
	var restored []string
	var failures []error
	note := func(what string, err error) {
		if err != nil {
			failures = append(failures, fmt.Errorf("restoring %s: %w", what, err))
			return
		}
		restored = append(restored, what)
	}
	// KEDA's webhook refuses to change a ScaledObject while another HorizontalPodAutoscaler is on its target, so these go
	// first.
	for _, name := range back.ScaledObjects {
		note(cluster.KindScaledObject+" "+name, s.editScaledObject(ctx, p, name, func(annotations map[string]string) {
			if annotations[plan.AnnotationPausedBy] == p.Name { // else a user or another policy paused or resumed it
				delete(annotations, plan.AnnotationPaused)
				delete(annotations, plan.AnnotationPausedBy)
			}
		}))
	}
	if back.MaxReplicas != nil {
		note(fmt.Sprintf("maxReplicas %d", *back.MaxReplicas), s.setMaxReplicas(ctx, subject, nil, back.MaxReplicas))
	}
	for _, hpa := range back.Autoscalers {
		note(cluster.KindAutoscaler+" "+hpa.Name, s.recreate(ctx, p, hpa))
	}
	return restored, joined(failures)
}

// recreate creates an autoscaler that was deleted, unless one with its name exists.
func (s suspender) recreate(ctx context.Context, p *v1alpha1.AutoscalingPolicy,
	kept *autoscalingv2.HorizontalPodAutoscaler,
) error {
	hpa := kept.DeepCopy()
	hpa.Namespace = p.Namespace
	err := s.client.Create(ctx, hpa, client.FieldOwner(plan.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// lastingError is an error that a retry does not fix.
type lastingError struct{ error }

func (e lastingError) Unwrap() error { return e.error }

// joined joins the failures, as a lastingError if no retry can fix any of them.
func joined(failures []error) error {
	err := errors.Join(failures...)
	for _, f := range failures {
		if !apierrors.IsForbidden(f) && !apierrors.IsInvalid(f) && !apierrors.IsBadRequest(f) && !meta.IsNoMatchError(f) {
			return err
		}
	}
	if err == nil {
		return nil
	}
	return lastingError{err}
}
