// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// observeConflicts finds the autoscaler with our name, and other autoscalers that write the same replicas: they scale
// the target or its StatefulSet.
func (o observer) observeConflicts(ctx context.Context, s plan.Subject, found *plan.Autoscalers) error {
	p := s.Policy
	ours := plan.AutoscalerName(p.Name)
	var err error
	if found.ScaledObject, err = ownScaledObject(ctx, o.config.Targets.Reader, p); err != nil {
		return err
	}
	paused := map[string]bool{}
	for _, key := range scaledKeys(p, s.Target) {
		if err := o.observeScaledObjects(ctx, s, found, key, paused); err != nil {
			return err
		}
	}
	for _, key := range scaledKeys(p, s.Target) {
		if err := o.observeAutoscalers(ctx, p, found, key, paused); err != nil {
			return err
		}
	}
	slices.SortFunc(found.Conflicting, func(a, b plan.ConflictingAutoscaler) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	slices.Sort(found.OtherScaledObjects)
	live := autoscalingv2.HorizontalPodAutoscaler{}
	err = o.config.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ours}, &live,
		client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading HorizontalPodAutoscaler %s: %w", ours, err)
	}
	if err == nil {
		named(p, found, &live)
	}
	return nil
}

// named records the HorizontalPodAutoscaler with our name: ours, or the one that KEDA created for our ScaledObject and
// that may outlive it.
func named(p *v1alpha1.AutoscalingPolicy, found *plan.Autoscalers, live *autoscalingv2.HorizontalPodAutoscaler) {
	if target.ControllerOf(live) == cluster.KindScaledObject+" "+live.Name &&
		(found.ScaledObject == nil || metav1.IsControlledBy(found.ScaledObject, p)) {
		found.KEDAAutoscaler = live
		return
	}
	found.Autoscaler = live
}

// observeScaledObjects adds KEDA's ScaledObjects except ours. A paused one does not conflict; it is recorded as paused.
func (o observer) observeScaledObjects(ctx context.Context, s plan.Subject, found *plan.Autoscalers, key string,
	paused map[string]bool,
) error {
	objects, err := o.config.Targets.Reader.List(ctx, cluster.KindScaledObject, client.InNamespace(s.Policy.Namespace),
		client.MatchingFields{target.IndexScaleTarget: key})
	if err != nil {
		return err
	}
	for i := range objects {
		object := &objects[i]
		isPaused := plan.IsPaused(object.Annotations)
		paused[object.GetName()] = isPaused
		if metav1.IsControlledBy(object, s.Policy) {
			continue
		}
		if s.Target != nil && key == keyOf(s.Target.Ref) {
			found.OtherScaledObjects = append(found.OtherScaledObjects, object.GetName())
		}
		ref := object.ScaleTarget()
		if ref == nil || isPaused {
			continue
		}
		owner := target.ControllerOf(object)
		terminating, err := o.terminates(ctx, s.Policy, owner)
		if err != nil {
			return err
		}
		found.Conflicting = append(found.Conflicting, plan.ConflictingAutoscaler{
			Kind: cluster.KindScaledObject, Name: object.GetName(), UID: object.GetUID(), Owner: owner, TargetKind: ref.Kind,
			TargetName: ref.Name,
			// of an earlier policy with its name
			Terminating: terminating || owner == v1alpha1.KindAutoscalingPolicy+" "+s.Policy.Name,
		})
	}
	return nil
}

// observeAutoscalers adds HorizontalPodAutoscalers. That of a ScaledObject counts as the ScaledObject, and is about to
// be deleted if the ScaledObject is paused.
func (o observer) observeAutoscalers(ctx context.Context, p *v1alpha1.AutoscalingPolicy, found *plan.Autoscalers,
	key string, paused map[string]bool,
) error {
	var list autoscalingv2.HorizontalPodAutoscalerList
	if err := o.config.Client.List(ctx, &list, client.InNamespace(p.Namespace),
		client.MatchingFields{target.IndexScaleTarget: key}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing HorizontalPodAutoscalers: %w", err)
	}
	for i := range list.Items {
		hpa := &list.Items[i]
		owner := target.ControllerOf(hpa)
		name, ofKeda := strings.CutPrefix(owner, cluster.KindScaledObject+" ")
		isPaused, known := paused[name]
		if hpa.Name == plan.AutoscalerName(p.Name) || ofKeda && known && !isPaused {
			continue
		}
		terminating, err := o.terminates(ctx, p, owner)
		if err != nil {
			return err
		}
		conflicting := plan.ConflictingAutoscaler{
			Kind: cluster.KindAutoscaler, Name: hpa.Name, UID: hpa.UID, Owner: owner,
			Terminating: ofKeda && isPaused || terminating,
			TargetKind:  hpa.Spec.ScaleTargetRef.Kind, TargetName: hpa.Spec.ScaleTargetRef.Name,
		}
		if p.Spec.ConflictPolicy == v1alpha1.ConflictTakeOver {
			conflicting.Manifest = manifestOf(hpa)
		}
		found.Conflicting = append(found.Conflicting, conflicting)
	}
	return nil
}

// terminates reports whether the policy that controls an autoscaler is gone, or gives it up because this policy names
// its target.
func (o observer) terminates(ctx context.Context, p *v1alpha1.AutoscalingPolicy, owner string) (bool, error) {
	name, isPolicy := strings.CutPrefix(owner, v1alpha1.KindAutoscalingPolicy+" ")
	if !isPolicy {
		return false, nil
	}
	var other v1alpha1.AutoscalingPolicy
	err := o.config.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, &other)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading AutoscalingPolicy %s: %w", name, err)
	}
	return apierrors.IsNotFound(err) || other.DeletionTimestamp != nil || selected(&other) > selected(p), nil
}

// maxManifest is the largest manifest that a status can hold, in bytes.
const maxManifest = 16 << 10

// manifestOf is the manifest to recreate an autoscaler from; empty if it is too large.
func manifestOf(hpa *autoscalingv2.HorizontalPodAutoscaler) v1alpha1.Manifest {
	kept := autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Name: hpa.Name, Labels: hpa.Labels, Annotations: map[string]string{},
			OwnerReferences: hpa.OwnerReferences,
		},
		Spec: hpa.Spec,
	}
	for key, value := range hpa.Annotations {
		if key != corev1.LastAppliedConfigAnnotation { // it repeats the rest
			kept.Annotations[key] = value
		}
	}
	text, err := json.Marshal(kept)
	if err != nil || len(text) > maxManifest {
		return ""
	}
	return v1alpha1.Manifest(text)
}
