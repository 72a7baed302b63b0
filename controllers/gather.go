// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"

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
	if err := r.config.Targets.circumstances(ctx, p.Namespace, found.Target); err != nil {
		return world, fmt.Errorf("finding what a change of replicas would do: %w", err)
	}
	if err := r.gatherRivals(ctx, &world); err != nil {
		return world, err
	}
	return world, r.gatherFirst(ctx, &world)
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
	return append(targetKeys(p), nameKey(policy.AutoscalerName(p.Name)))
}

// nameKey is under what the policy is found whose HorizontalPodAutoscaler has a name.
func nameKey(name string) string { return "named/" + name }

// indexOtherAutoscaler is the function of the index for ScaledObjects (spec.scaleTargetRef) and VerticalPodAutoscalers
// (spec.targetRef).
func indexOtherAutoscaler(object client.Object) []string {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if ref := otherTarget(u); ref != nil {
		return []string{scaleTarget(ref.APIVersion, ref.Kind, ref.Name)}
	}
	return nil
}

// otherTarget is what a ScaledObject or a VerticalPodAutoscaler is for; nil when it does not say.
func otherTarget(object *unstructured.Unstructured) *v1alpha1.ScaleTargetRef {
	for _, field := range []string{"scaleTargetRef", "targetRef"} {
		ref, found, err := unstructured.NestedStringMap(object.Object, "spec", field)
		if err == nil && found {
			// Deployment of apps/v1 is KEDA's default.
			return &v1alpha1.ScaleTargetRef{
				APIVersion: cmp.Or(ref["apiVersion"], "apps/v1"),
				Kind:       cmp.Or(ref["kind"], "Deployment"), Name: ref["name"],
			}
		}
	}
	return nil
}

// targetKeys are under what a policy is found: first its target, by the object that runs the replicas, then what else
// is to wake it. Policies with a selector have none.
func targetKeys(p *v1alpha1.AutoscalingPolicy) []string {
	ref := p.Spec.ScaleTargetRef
	own := scaleTarget(v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, p.Name)
	switch ours := p.Spec.PulsarFunctionRef; {
	case ours.Name != "":
		return []string{"worker/" + string(cmp.Or(ours.Kind, v1alpha1.WorkloadFunction)) + "/" + ours.FullName(), own}
	case ref.Component.Name != "":
		return []string{
			scaleTarget(ref.APIVersion, string(ref.Component.Kind), ref.Name+"-"+ref.Component.Name), scaleTarget(ref.APIVersion,
				ref.Kind, ref.Name), own,
		}
	case ref.Name != "":
		return []string{scaleTarget(ref.APIVersion, ref.Kind, ref.Name)}
	default:
		return nil
	}
}

// scaledKeys are the keys of all whose autoscalers would be rivals; before the target is found, those that the policy
// tells.
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
