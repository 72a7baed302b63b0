// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// IndexScaleTarget is the index of policies and of HorizontalPodAutoscalers by what they scale.
const IndexScaleTarget = "spec.scaleTargetRef"

// Key is the key of that index: group, kind and name, since versions of one group are the same object.
func Key(apiVersion, kind, name string) string {
	gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
	return gk.Group + "/" + gk.Kind + "/" + name
}

// IndexPolicy and IndexAutoscaler are the functions of the index.
func IndexPolicy(object client.Object) []string {
	p, ok := object.(*v1alpha1.AutoscalingPolicy)
	if !ok {
		return nil
	}
	return append(Keys(p), NameKey(plan.AutoscalerName(p.Name)))
}

// NameKey is the index key of the policy that owns the HorizontalPodAutoscaler of that name.
func NameKey(name string) string { return "named/" + name }

// indexOtherAutoscaler is the function of the index for ScaledObjects (spec.scaleTargetRef) and VerticalPodAutoscalers
// (spec.targetRef).
func indexOtherAutoscaler(object client.Object) []string {
	c, ok := object.(*Cached)
	if !ok {
		return nil
	}
	if ref := c.ScaleTarget(); ref != nil {
		return []string{Key(ref.APIVersion, ref.Kind, ref.Name)}
	}
	return nil
}

// Keys are the index keys of a policy: first its target, by the object that runs the replicas, then the other objects
// with events that enqueue the policy.
func Keys(p *v1alpha1.AutoscalingPolicy) []string {
	ref := p.Spec.ScaleTargetRef
	own := Key(v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, p.Name)
	switch ours := p.Spec.PulsarFunctionRef; {
	case ours.Name != "":
		return []string{"worker/" + string(cmp.Or(ours.Kind, v1alpha1.WorkloadFunction)) + "/" + ours.FullName(), own}
	case ref.Component.Name != "":
		return []string{
			Key(ref.APIVersion, string(ref.Component.Kind), ref.Name+"-"+ref.Component.Name), Key(ref.APIVersion,
				ref.Kind, ref.Name), own,
		}
	case ref.Name != "":
		return []string{Key(ref.APIVersion, ref.Kind, ref.Name)}
	default:
		return nil
	}
}

// ControllerOf names the controller of an object, such as "Function resize"; empty when it has none.
func ControllerOf(object metav1.Object) string {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return ""
	}
	return owner.Kind + " " + owner.Name
}

// IndexAutoscaler finds HorizontalPodAutoscalers by what they scale.
func IndexAutoscaler(object client.Object) []string {
	hpa, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return nil
	}
	ref := hpa.Spec.ScaleTargetRef
	return []string{Key(ref.APIVersion, ref.Kind, ref.Name)}
}

// ConnectionOf is the connection of the policy that scales the object, by name the first of several; nil without a
// policy. A StatefulSet does not name its Pulsar.
func ConnectionOf(ctx context.Context, reader client.Reader, namespace string,
	ref v1alpha1.ScaleTargetRef,
) (*v1alpha1.PulsarConnection, error) {
	var list v1alpha1.AutoscalingPolicyList
	key := Key(ref.APIVersion, ref.Kind, ref.Name)
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{IndexScaleTarget: key},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing policies by what they scale: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // none is a result
	}
	first := slices.MinFunc(list.Items,
		func(a, b v1alpha1.AutoscalingPolicy) int { return strings.Compare(a.Name, b.Name) })
	return first.Spec.Pulsar, nil
}

// OwnedByPolicy reports whether a policy controls the ScaledObject.
func OwnedByPolicy(object metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && owner.Kind == v1alpha1.KindAutoscalingPolicy
}

// IndexOf is the index of the objects of a kind; empty for kinds that are read by name alone.
func IndexOf(kind string) (field string, by client.IndexerFunc) {
	switch kind {
	case cluster.KindScaledObject, cluster.KindVerticalPodAutoscaler:
		return IndexScaleTarget, indexOtherAutoscaler
	case cluster.KindPolicy:
		return IndexScaleTarget, IndexPolicy
	default:
		return "", nil
	}
}
