// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

// FieldManager owns the fields that the controller applies.
const FieldManager = "pulsar-autoscaler"

// LabelPolicy names the policy on the objects that the controller creates for it.
const LabelPolicy = v1alpha1.Group + "/policy"

// HorizontalPodAutoscaler is the autoscaler to apply for a policy: an Object metric on the policy itself with
// AverageValue 1, so that the HPA sets exactly the decided number. It has no tolerance and no windows, since the
// decision applies its own. Its minimum is 1 at least: an HPA with 0 scales from zero up to 15 s later than the
// controller, and as a second writer.
//
// Source: Kubernetes replica_calculator.go: ceil(V/1), and the tolerance fields that are on by default since 1.35.
func HorizontalPodAutoscaler(p *v1alpha1.AutoscalingPolicy, target *Target) *autoscalingv2.HorizontalPodAutoscaler {
	gv, one := v1alpha1.GroupVersion().String(), resource.MustParse("1")
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{
			APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: KindAutoscaler,
		},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: AutoscalerName(p.Name), Labels: ownLabels(p),
			OwnerReferences: ownerReferences(p),
		},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: scaledBy(target.Ref),
			MinReplicas:    new(max(1, policy.MinReplicas(p.Spec))), MaxReplicas: p.Spec.MaxReplicas,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ObjectMetricSourceType,
				Object: &autoscalingv2.ObjectMetricSource{
					DescribedObject: autoscalingv2.CrossVersionObjectReference{
						APIVersion: gv, Kind: v1alpha1.KindAutoscalingPolicy, Name: p.Name,
					},
					Metric: autoscalingv2.MetricIdentifier{Name: served.MetricDesiredReplicas},
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &one},
				},
			}},
			Behavior: followingBehavior(p.Spec),
		},
	}
}

// scaledBy is the reference of an autoscaler to its target.
func scaledBy(ref v1alpha1.ScaleTargetRef) autoscalingv2.CrossVersionObjectReference {
	return autoscalingv2.CrossVersionObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
}

// ownLabels are the labels of the objects that the controller creates for a policy.
func ownLabels(p *v1alpha1.AutoscalingPolicy) map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": FieldManager, LabelPolicy: LabelValue(p.Name)}
}

// ownerReferences make the policy the controller of such an object.
func ownerReferences(p *v1alpha1.AutoscalingPolicy) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindAutoscalingPolicy, Name: p.Name, UID: p.UID,
		Controller: new(true),
	}}
}

// followingBehavior allows every change at once: the largest step of the API, every second. Of spec.behavior, which
// decisions apply, it repeats what is disabled: a second limit over time would only come later.
func followingBehavior(spec v1alpha1.AutoscalingPolicySpec) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	up, down := followingRules(policy.ScaleUpDisabled(spec)), followingRules(policy.ScaleDownDisabled(spec))
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &up, ScaleDown: &down}
}

func followingRules(disabled bool) autoscalingv2.HPAScalingRules {
	selected, none := autoscalingv2.MaxChangePolicySelect, resource.MustParse("0")
	if disabled {
		selected = autoscalingv2.DisabledPolicySelect
	}
	return autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: new(int32), SelectPolicy: &selected, Tolerance: &none,
		Policies: []autoscalingv2.HPAScalingPolicy{{
			Type: autoscalingv2.PodsScalingPolicy, Value: math.MaxInt16,
			PeriodSeconds: 1,
		}},
	}
}

// AutoscalerIsCurrent reports whether applying would change nothing. A server before 1.35 drops the tolerance: another
// apply fixes that only after an upgrade.
func AutoscalerIsCurrent(live, wanted *autoscalingv2.HorizontalPodAutoscaler) bool {
	if live == nil || !HasAll(live.Labels, wanted.Labels) {
		return false
	}
	want := wanted.Spec
	if !ToleranceHonoured(live) {
		up, down := *want.Behavior.ScaleUp, *want.Behavior.ScaleDown
		up.Tolerance, down.Tolerance = nil, nil
		want.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &up, ScaleDown: &down}
	}
	return equality.Semantic.DeepEqual(want, live.Spec)
}

// ToleranceHonoured reports whether the server kept the tolerance. Without it the HPA ignores changes of up to 10 %.
func ToleranceHonoured(live *autoscalingv2.HorizontalPodAutoscaler) bool {
	behavior := live.Spec.Behavior
	return behavior != nil && behavior.ScaleUp != nil && behavior.ScaleUp.Tolerance != nil &&
		behavior.ScaleDown != nil && behavior.ScaleDown.Tolerance != nil
}
