// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
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
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// maxFarewells is how often a deleted policy tries to give back what it took over: for a minute.
const maxFarewells = 30

// errOursStays is why nothing was given back although nothing failed.
var errOursStays = errors.New(
	"the autoscaler of the policy is still there, and what is given back would stand beside it")

// finalize restores what a deleted policy took over, then removes the finalizer: when that is done, when it never can
// be, or after maxFarewells. Replicas stay where they are.
func (r *PolicyReconciler) finalize(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (string, error) {
	memory := r.tracked.follow(p, nil)
	if !memory.leavesSince.IsZero() {
		if r.config.Clock().Sub(memory.leavesSince) < soon {
			return resultGivingBack, nil // who goes on from here has to see what the target got back
		}
		return resultGone, r.removeFinalizer(ctx, p)
	}
	memory.farewells++
	done, err := r.conflicts.restore(ctx, p)
	var lasting lastingError
	if !done && !errors.As(err, &lasting) && memory.farewells < maxFarewells {
		if err != nil {
			log.FromContext(ctx).Info("giving back, to be tried again", "why", err.Error())
		}
		return resultGivingBack, nil
	}
	if !done && err == nil {
		err = errOursStays
	}
	if err != nil {
		r.config.Recorder.Eventf(p, nil, corev1.EventTypeWarning, reasonGiveBackFailed, "GiveBack", "%s",
			plan.Shorten("the policy goes all the same, restore by hand what status.takenOver says: "+err.Error(), maxNote))
		log.FromContext(ctx).Error(err, "not given back")
	}
	if p.Status.TakenOver != nil {
		memory.leavesSince = r.config.Clock()
		return resultGivingBack, nil
	}
	return resultGone, r.removeFinalizer(ctx, p)
}

// removeFinalizer takes our finalizer off a deleted policy.
func (r *PolicyReconciler) removeFinalizer(ctx context.Context, p *v1alpha1.AutoscalingPolicy) error {
	finalizers := slices.DeleteFunc(slices.Clone(p.Finalizers), func(name string) bool { return name == plan.Finalizer })
	if err := r.conflicts.setFinalizers(ctx, p, finalizers); err != nil {
		return err
	}
	r.forget(client.ObjectKeyFromObject(p))
	return nil
}

// restoreRefused gives back what a policy took over that refuses by now, and returns true while that is under way.
func (c conflictResolver) restoreRefused(ctx context.Context, outcome plan.Outcome, memory *policyMemory) (
	plan.Outcome, bool, error,
) {
	p := outcome.Observed.Policy
	if outcome.Now.Sub(memory.gaveBackAt) < settleFor {
		return outcome, true, nil // memory may still show the target without what it got back
	}
	if !plan.MustRestore(p) {
		return outcome, false, nil
	}
	done, err := c.restore(ctx, p)
	if err != nil {
		outcome.Violation = &plan.Violation{
			Condition: v1alpha1.ConditionAutoscalerApplied, Reason: v1alpha1.ReasonRestoring,
			Message: "giving back what was taken over, which is tried again: " + err.Error(),
		}
		outcome.ApplyFailed = err
		return outcome, false, nil //nolint:nilerr // it is in the outcome, and reported before it is returned
	}
	if !done {
		outcome.Violation = cmp.Or(outcome.KEDAStays(), outcome.Violation)
		return outcome, outcome.KEDAStays() == nil, nil // what takes a while is told of
	}
	memory.gaveBackAt = outcome.Now
	if err := c.setTakenOver(ctx, p, nil); err != nil {
		return outcome, true, err
	}
	return outcome, true, c.setFinalizers(ctx, p,
		slices.DeleteFunc(slices.Clone(p.Finalizers), func(name string) bool { return name == plan.Finalizer }))
}

// restore says whether all is given back. Ours goes first and has to be gone, so that there are never two.
func (c conflictResolver) restore(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (done bool, err error) {
	observed, err := c.observer.observe(ctx, p)
	if err != nil {
		return false, err
	}
	back := plan.Restore(observed)
	if back.RemoveOurs {
		_, hpaErr := c.applier.removeAutoscaler(ctx, observed)
		_, objectErr := c.applier.removeScaledObject(ctx, observed, c.clock())
		return false, errors.Join(hpaErr, objectErr)
	}
	var given []string
	var failures []error
	note := func(what string, err error) {
		if err != nil {
			failures = append(failures, fmt.Errorf("giving back %s: %w", what, err))
			return
		}
		given = append(given, what)
	}
	// KEDA's webhook refuses to change a ScaledObject while another HorizontalPodAutoscaler is on its target, so these go
	// first.
	for _, name := range back.ScaledObjects {
		note(cluster.KindScaledObject+" "+name, c.editScaledObject(ctx, p, name, func(annotations map[string]string) {
			if annotations[plan.AnnotationPausedBy] == p.Name { // else a user or another policy paused or resumed it
				delete(annotations, cluster.AnnotationPaused)
				delete(annotations, plan.AnnotationPausedBy)
			}
		}))
	}
	if back.MaxReplicas != nil {
		note(fmt.Sprintf("maxReplicas %d", *back.MaxReplicas), c.setMaxReplicas(ctx, observed, nil, back.MaxReplicas))
	}
	for _, hpa := range back.Autoscalers {
		note(cluster.KindAutoscaler+" "+hpa.Name, c.recreate(ctx, p, hpa))
	}
	if err := joined(failures); err != nil {
		return false, err
	}
	if len(given) > 0 {
		c.recorder.Eventf(p, nil, corev1.EventTypeNormal, reasonGaveBack, "GiveBack", "%s",
			plan.Shorten(strings.Join(given, ", "), maxNote))
	}
	if len(back.Kept) > 0 {
		c.recorder.Eventf(p, nil, corev1.EventTypeWarning, reasonKept, "Keep", "%s",
			plan.Shorten(strings.Join(back.Kept, "; "), maxNote))
	}
	return true, nil
}

// recreate makes an autoscaler that was deleted, unless there is one of its name.
func (c conflictResolver) recreate(ctx context.Context, p *v1alpha1.AutoscalingPolicy,
	kept *autoscalingv2.HorizontalPodAutoscaler,
) error {
	hpa := kept.DeepCopy()
	hpa.Namespace = p.Namespace
	err := c.client.Create(ctx, hpa, client.FieldOwner(plan.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// lastingError is why trying again leads nowhere.
type lastingError struct{ error }

func (e lastingError) Unwrap() error { return e.error }

// joined fails with what failed, as lasting where nothing is worth another try.
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
