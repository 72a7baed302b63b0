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
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// settleFor is how long after a write memory may still show what was before: watches lag by milliseconds as a rule.
	settleFor = 5 * time.Second
	// soon is when to look again at what is under way.
	soon = 2 * time.Second
)

// Reasons of events.
const (
	reasonTookOver       = "TookOver"
	reasonGaveBack       = "GaveBack"
	reasonKept           = "NotGivenBack"
	reasonGiveBackFailed = "GiveBackFailed"
)

// putAway is what was put away by this process, for one generation of a policy. Who puts it back, such as a GitOps
// controller, is not fought: it is told of.
type putAway struct {
	generation int64
	since      map[string]time.Time
}

// again says that something was put away more than a moment ago, and is back.
func (a *putAway) again(p *v1alpha1.AutoscalingPolicy, what string, now time.Time) bool {
	if a.generation != p.Generation {
		a.generation, a.since = p.Generation, nil
	}
	since, seen := a.since[what]
	return seen && now.Sub(since) > settleFor
}

// note remembers the first time.
func (a *putAway) note(what string, now time.Time) {
	if _, seen := a.since[what]; seen {
		return
	}
	if a.since == nil {
		a.since = map[string]time.Time{}
	}
	a.since[what] = now
}

// conflictResolver suspends conflicting autoscalers for a policy, and restores them.
type conflictResolver struct {
	client   client.Client
	recorder events.EventRecorder
	clock    func() time.Time
	observer observer
	applier  applier
}

// suspendNext puts one thing away and returns true, or leaves in the outcome what stands in the way. The finalizer and
// the record are written before, so that a crash in between loses nothing.
func (c conflictResolver) suspendNext(ctx context.Context, outcome plan.Outcome, memory *policyMemory) (
	plan.Outcome, bool,
) {
	found := outcome.Violation
	step, violation := plan.NextSuspension(outcome)
	outcome.Violation = violation
	if step == nil {
		return outcome, false
	}
	p := outcome.Observed.Policy
	if !step.LeftBehind && memory.putAway.again(p, step.String(), outcome.Now) {
		outcome.Violation = &plan.Violation{
			Condition: found.Condition, Reason: v1alpha1.ReasonRecreated,
			Message: fmt.Sprintf("%s was suspended and is back: stop the tool that writes it (GitOps?) first. %s", step,
				found.Message),
		}
		return outcome, false
	}
	err := c.record(ctx, p, step.Record)
	if err == nil {
		err = c.suspend(ctx, outcome.Observed, *step)
	}
	if err != nil {
		outcome.Violation = &plan.Violation{
			Condition: found.Condition, Reason: v1alpha1.ReasonTakeOverFailed, Message: fmt.Sprintf(
				"taking over %s, which is tried again: %s", step, err),
		}
		outcome.ApplyFailed = fmt.Errorf("taking over %s: %w", step, err)
		return outcome, false
	}
	memory.putAway.note(step.String(), outcome.Now)
	c.recorder.Eventf(p, nil, corev1.EventTypeNormal, reasonTookOver, "TakeOver",
		"%s was put away; it is given back when the policy goes", step)
	log.FromContext(ctx).Info("taken over", "what", step.String(), "target", plan.ShortName(p.Spec))
	return outcome, true
}

// record brings finalizer and status to what they have to say before something is put away.
func (c conflictResolver) record(ctx context.Context, p *v1alpha1.AutoscalingPolicy, taken v1alpha1.TakenOver) error {
	if !slices.Contains(p.Finalizers, plan.Finalizer) {
		if err := c.setFinalizers(ctx, p, append(slices.Clone(p.Finalizers), plan.Finalizer)); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(p.Status.TakenOver, &taken) {
		return nil
	}
	return c.setTakenOver(ctx, p, &taken)
}

// setFinalizers fails when another client wrote the policy meanwhile: the list is written as a whole.
func (c conflictResolver) setFinalizers(ctx context.Context, p *v1alpha1.AutoscalingPolicy,
	finalizers []string,
) error {
	before := p.DeepCopy()
	p.Finalizers = finalizers
	err := c.client.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(plan.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		p.Finalizers = before.Finalizers
		return fmt.Errorf("writing the finalizers of the policy: %w", err)
	}
	return nil
}

// setTakenOver fails when another client wrote the policy meanwhile: its lists are written as wholes, and an
// entry that is left out is never restored.
func (c conflictResolver) setTakenOver(ctx context.Context, p *v1alpha1.AutoscalingPolicy,
	taken *v1alpha1.TakenOver,
) error {
	before := p.DeepCopy()
	p.Status.TakenOver = taken
	if err := c.client.Status().Patch(ctx, p,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		p.Status.TakenOver = before.Status.TakenOver
		return fmt.Errorf("writing status.takenOver: %w", err)
	}
	return nil
}

// suspend writes one step. What is gone already is fine.
func (c conflictResolver) suspend(ctx context.Context, observed plan.Observed, step plan.Suspension) error {
	p := observed.Policy
	switch step.Action {
	case plan.ClearMaxReplicas:
		return c.setMaxReplicas(ctx, observed, observed.Target.MaxReplicas, nil)
	case plan.DeleteAutoscaler:
		hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: step.Name}}
		if err := c.client.Delete(ctx, hpa, client.Preconditions{UID: &step.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting it: %w", err)
		}
		return nil
	case plan.PauseScaledObject:
		return c.editScaledObject(ctx, p, step.Name, func(annotations map[string]string) {
			annotations[cluster.AnnotationPaused], annotations[plan.AnnotationPausedBy] = "true", p.Name
		})
	default:
		return fmt.Errorf("there is no action %d", step.Action)
	}
}

// editScaledObject changes the annotations of a ScaledObject as it is now.
func (c conflictResolver) editScaledObject(ctx context.Context, p *v1alpha1.AutoscalingPolicy, name string,
	edit func(map[string]string),
) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := cluster.NewUnstructured(cluster.KindScaledObject)
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, live); err != nil {
			return ignoreGone(err)
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
		return c.client.Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
			client.FieldOwner(plan.FieldManager))
	})
}

// ignoreGone is nil where the object or its kind does not exist.
func ignoreGone(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
