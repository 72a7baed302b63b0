// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

// soon is the delay of the next reconcile during a suspension or restoration.
const soon = 2 * time.Second

// Reasons of events.
const (
	reasonSuspended     = "AutoscalerSuspended"
	reasonRestored      = "AutoscalerRestored"
	reasonNotRestored   = "AutoscalerNotRestored"
	reasonRestoreFailed = "RestoreFailed"
)

// suspender suspends other autoscalers for a policy, and restores them.
type suspender struct {
	client   client.Client
	recorder events.EventRecorder
	reader   *target.Reader
}

// suspend suspends one conflicting autoscaler. The finalizer and the record are written first, so that a crash in
// between loses nothing.
func (s suspender) suspend(ctx context.Context, subject plan.Subject, step plan.Suspension,
	result plan.Result,
) plan.Result {
	err := s.record(ctx, subject.Policy, step.Record)
	if err == nil {
		err = s.applySuspension(ctx, subject, step)
	}
	if err != nil {
		result.ApplyFailed = fmt.Errorf("suspending %s: %w", step, err)
		result.Violation = plan.ScalingProblem(v1alpha1.ReasonTakeOverFailed,
			"retrying after an error: suspending %s: %s", step, err)
		return result
	}
	recordEvent(ctx, s.recorder, subject.Policy, report.Event{
		Type: corev1.EventTypeNormal, Reason: reasonSuspended, Action: "TakeOver",
		Note: step.String() + " is suspended; it is restored when the policy is deleted",
	})
	result.Suspended = true
	return result
}

// record writes the finalizer and the record that a suspension needs.
func (s suspender) record(ctx context.Context, p *v1alpha1.AutoscalingPolicy, taken v1alpha1.TakenOver) error {
	if !slices.Contains(p.Finalizers, plan.Finalizer) {
		if err := s.setFinalizers(ctx, p, append(slices.Clone(p.Finalizers), plan.Finalizer)); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(p.Status.TakenOver, &taken) {
		return nil
	}
	return s.setTakenOver(ctx, p, &taken)
}

// setFinalizers fails if another client wrote the policy meanwhile: the patch replaces the list.
func (s suspender) setFinalizers(ctx context.Context, p *v1alpha1.AutoscalingPolicy,
	finalizers []string,
) error {
	before := p.DeepCopy()
	p.Finalizers = finalizers
	err := s.client.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(plan.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		p.Finalizers = before.Finalizers
		return fmt.Errorf("writing the finalizers of the policy: %w", err)
	}
	return nil
}

// setTakenOver fails if another client wrote the policy meanwhile: the patch replaces lists, and an entry lost from
// them is never restored.
func (s suspender) setTakenOver(ctx context.Context, p *v1alpha1.AutoscalingPolicy,
	taken *v1alpha1.TakenOver,
) error {
	before := p.DeepCopy()
	p.Status.TakenOver = taken.DeepCopy() // the answer is decoded into it, and taken shares numbers with the cache
	if err := s.client.Status().Patch(ctx, p,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		p.Status.TakenOver = before.Status.TakenOver
		return fmt.Errorf("writing status.takenOver: %w", err)
	}
	return nil
}

// applySuspension carries out one step. An object that is gone is fine.
func (s suspender) applySuspension(ctx context.Context, subject plan.Subject, step plan.Suspension) error {
	p := subject.Policy
	switch step.Kind {
	case "": // maxReplicas
		return s.setMaxReplicas(ctx, subject, subject.Target.MaxReplicas, nil)
	case cluster.KindAutoscaler:
		hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: step.Name}}
		if err := s.client.Delete(ctx, hpa, client.Preconditions{UID: &step.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting it: %w", err)
		}
		return nil
	case cluster.KindScaledObject:
		return s.editScaledObject(ctx, p, step.Name, func(annotations map[string]string) {
			annotations[plan.AnnotationPaused], annotations[plan.AnnotationPausedBy] = "true", p.Name
		})
	default:
		return fmt.Errorf("a %s cannot be suspended", step.Kind)
	}
}

// editScaledObject changes the annotations of the live ScaledObject.
func (s suspender) editScaledObject(ctx context.Context, p *v1alpha1.AutoscalingPolicy, name string,
	edit func(map[string]string),
) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := cluster.NewUnstructured(cluster.KindScaledObject)
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, live); err != nil {
			return ignoreNotFound(err)
		}
		before := live.DeepCopy()
		annotations := live.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		edit(annotations)
		live.SetAnnotations(annotations)
		if equality.Semantic.DeepEqual(before.GetAnnotations(), live.GetAnnotations()) {
			return nil
		}
		return namingGrant(s.client.Patch(ctx, live,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
			client.FieldOwner(plan.FieldManager)), cluster.KindScaledObject)
	})
}

// ignoreNotFound returns nil if the object or its kind does not exist.
func ignoreNotFound(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
