// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// gather reads all that a decision about the policy rests on, except the backlog.
func (r *PolicyReconciler) gather(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (policy.World, error) {
	world := policy.World{Policy: p, Abilities: r.config.Abilities()}
	found, err := r.config.Targets.Find(ctx, p.Namespace, p.Spec)
	if err != nil {
		return world, fmt.Errorf("finding the target: %w", err)
	}
	world.Target, world.Unsupported = found.Target, found.Unsupported
	if world.Sharers, err = r.config.Targets.sharers(ctx, p.Namespace, found.Target); err != nil {
		return world, fmt.Errorf("finding who shares the subscription: %w", err)
	}
	if err := r.gatherAutoscalers(ctx, &world); err != nil {
		return world, err
	}
	world.OlderPolicy, err = r.olderPolicy(ctx, p)
	return world, err
}

// gatherAutoscalers finds the autoscaler that carries our name, and all others that write the same replicas: those of the
// target, and those of the StatefulSet that Function Mesh makes for it.
func (r *PolicyReconciler) gatherAutoscalers(ctx context.Context, world *policy.World) error {
	p := world.Policy
	ours := policy.AutoscalerName(p.Name)
	for _, target := range scaledKeys(p, world.Target) {
		var list autoscalingv2.HorizontalPodAutoscalerList
		if err := r.config.Client.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingFields{indexScaleTarget: target}); err != nil {
			return fmt.Errorf("listing HorizontalPodAutoscalers: %w", err)
		}
		for _, hpa := range list.Items {
			if hpa.Name != ours {
				world.Rivals = append(world.Rivals, policy.Rival{
					Kind: "HorizontalPodAutoscaler", Name: hpa.Name,
					TargetKind: hpa.Spec.ScaleTargetRef.Kind, TargetName: hpa.Spec.ScaleTargetRef.Name, Owner: controllerOf(&hpa),
				})
			}
		}
	}
	slices.SortFunc(world.Rivals, func(a, b policy.Rival) int { return strings.Compare(a.Name, b.Name) })
	var live autoscalingv2.HorizontalPodAutoscaler
	err := r.config.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ours}, &live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading HorizontalPodAutoscaler %s: %w", ours, err)
	}
	if err == nil {
		world.Autoscaler = &live
	}
	return nil
}

// olderPolicy names the oldest other policy that scales the same target; by name where two are of the same second. One
// that only recommends scales nothing.
func (r *PolicyReconciler) olderPolicy(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (string, error) {
	var list v1alpha1.AutoscalingPolicyList
	keys := targetKeys(p)
	if len(keys) == 0 {
		return "", nil
	}
	if err := r.config.Client.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingFields{indexScaleTarget: keys[0]}); err != nil {
		return "", fmt.Errorf("listing policies: %w", err)
	}
	oldest := p
	for i := range list.Items {
		other := &list.Items[i]
		if (other.Spec.Mode == v1alpha1.ModeAuto || other.Spec.Mode == "") && other.DeletionTimestamp == nil && byAge(other, oldest) < 0 {
			oldest = other
		}
	}
	if oldest.Name == p.Name {
		return "", nil
	}
	return oldest.Name, nil
}

func byAge(a, b *v1alpha1.AutoscalingPolicy) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// indexScaleTarget is the index of policies and of HorizontalPodAutoscalers by what they scale.
const indexScaleTarget = "spec.scaleTargetRef"

// scaleTarget is the key of that index: group, kind and name, since versions of one group are the same object.
func scaleTarget(apiVersion, kind, name string) string {
	gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
	return gk.Group + "/" + gk.Kind + "/" + name
}

// indexPolicy and indexAutoscaler are the functions of the index.
func indexPolicy(object client.Object) []string {
	p, ok := object.(*v1alpha1.AutoscalingPolicy)
	if !ok {
		return nil
	}
	return targetKeys(p)
}

// indexOtherAutoscaler is the function of the index for ScaledObjects (spec.scaleTargetRef) and VerticalPodAutoscalers
// (spec.targetRef).
func indexOtherAutoscaler(object client.Object) []string {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	for _, field := range []string{"scaleTargetRef", "targetRef"} {
		ref, found, err := unstructured.NestedStringMap(u.Object, "spec", field)
		if err == nil && found {
			// Deployment of apps/v1 is KEDA's default.
			return []string{scaleTarget(cmp.Or(ref["apiVersion"], "apps/v1"), cmp.Or(ref["kind"], "Deployment"), ref["name"])}
		}
	}
	return nil
}

// targetKeys are under what a policy is found: first its target, by the object that runs the replicas, then what else is to
// wake it. Policies with a selector have none.
func targetKeys(p *v1alpha1.AutoscalingPolicy) []string {
	ref := p.Spec.ScaleTargetRef
	own := scaleTarget(v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, p.Name)
	switch ours := p.Spec.PulsarFunctionRef; {
	case ours.Name != "":
		return []string{"worker/" + string(ours.Kind) + "/" + ours.FullName(), own}
	case ref.Component.Name != "":
		return []string{
			scaleTarget(ref.APIVersion, string(ref.Component.Kind), ref.Name+"-"+ref.Component.Name), scaleTarget(ref.APIVersion, ref.Kind, ref.Name), own,
		}
	case ref.Name != "":
		return []string{scaleTarget(ref.APIVersion, ref.Kind, ref.Name)}
	default:
		return nil
	}
}

// scaledKeys are the keys of all whose autoscalers would be rivals; before the target is found, those that the policy tells.
func scaledKeys(p *v1alpha1.AutoscalingPolicy, target *policy.Target) []string {
	if target == nil {
		return targetKeys(p)
	}
	var keys []string
	for _, ref := range target.Scaled {
		keys = append(keys, scaleTarget(ref.APIVersion, ref.Kind, ref.Name))
	}
	if target.Scaling != policy.BySubresource {
		keys = append(keys, scaleTarget(v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, p.Name))
	}
	return keys
}

// controllerOf names what controls an object, such as "Function resize"; empty when nothing does.
func controllerOf(object metav1.Object) string {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return ""
	}
	return owner.Kind + " " + owner.Name
}

func indexAutoscaler(object client.Object) []string {
	hpa, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return nil
	}
	ref := hpa.Spec.ScaleTargetRef
	return []string{scaleTarget(ref.APIVersion, ref.Kind, ref.Name)}
}
