// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	acautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	acmetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

// FieldManager owns the fields that the controller applies.
const FieldManager = "pulsar-autoscaler"

// LabelPolicy names the policy on the objects that the controller creates for it.
const LabelPolicy = v1alpha1.Group + "/policy"

// AutoscalerName is the name of the policy's HorizontalPodAutoscaler. It ends in a hash, so it never equals that of a
// Function, Sink or Source (<cr>, <cr>-function): Function Mesh would delete or adopt it. The hash covers the whole
// policy name, so that long names stay distinct.
func AutoscalerName(policy string) string {
	const prefix, longest = "pap-", 63
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(policy)) // a hash.Hash never fails
	suffix := fmt.Sprintf("-%08x", hash.Sum32())
	if most := longest - len(prefix) - len(suffix); len(policy) > most {
		policy = strings.TrimRight(policy[:most], "-.")
	}
	return prefix + policy + suffix
}

// HorizontalPodAutoscaler is the autoscaler to apply for a policy: an Object metric on the policy itself with
// AverageValue 1, so that the HPA sets exactly the decided number. It has no tolerance and no windows, since the
// decision applies its own. Its minimum is 1 at least: an HPA with 0 scales from zero up to 15 s later than the
// controller, and as a second writer.
//
// Source: Kubernetes replica_calculator.go: ceil(V/1), and the tolerance fields that are on by default since 1.35.
func HorizontalPodAutoscaler(p *v1alpha1.AutoscalingPolicy, target *Target,
) *acautoscalingv2.HorizontalPodAutoscalerApplyConfiguration {
	gv, ref := v1alpha1.GroupVersion().String(), target.Ref
	return acautoscalingv2.HorizontalPodAutoscaler(AutoscalerName(p.Name), p.Namespace).
		WithLabels(ownLabels(p)).
		WithOwnerReferences(acmetav1.OwnerReference().
			WithAPIVersion(gv).WithKind(v1alpha1.KindAutoscalingPolicy).
			WithName(p.Name).WithUID(p.UID).WithController(true)).
		WithSpec(acautoscalingv2.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(acautoscalingv2.CrossVersionObjectReference().
				WithAPIVersion(ref.APIVersion).WithKind(ref.Kind).WithName(ref.Name)).
			WithMinReplicas(max(1, policy.MinReplicas(p.Spec))).
			WithMaxReplicas(p.Spec.MaxReplicas).
			WithMetrics(acautoscalingv2.MetricSpec().
				WithType(autoscalingv2.ObjectMetricSourceType).
				WithObject(acautoscalingv2.ObjectMetricSource().
					WithDescribedObject(acautoscalingv2.CrossVersionObjectReference().
						WithAPIVersion(gv).WithKind(v1alpha1.KindAutoscalingPolicy).WithName(p.Name)).
					WithMetric(acautoscalingv2.MetricIdentifier().WithName(served.MetricDesiredReplicas)).
					WithTarget(acautoscalingv2.MetricTarget().
						WithType(autoscalingv2.AverageValueMetricType).
						WithAverageValue(resource.MustParse("1"))))).
			WithBehavior(acautoscalingv2.HorizontalPodAutoscalerBehavior().
				WithScaleUp(following(policy.ScaleUpDisabled(p.Spec))).
				WithScaleDown(following(policy.ScaleDownDisabled(p.Spec)))))
}

// ownLabels are the labels of the objects that the controller creates for a policy.
func ownLabels(p *v1alpha1.AutoscalingPolicy) map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": FieldManager, LabelPolicy: LabelValue(p.Name)}
}

// followingRules allow every change at once: the largest step of the API, every second. Of behavior, which decisions
// apply, they repeat what is disabled: a second limit over time would only come later.
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

// following is followingRules as an apply configuration.
func following(disabled bool) *acautoscalingv2.HPAScalingRulesApplyConfiguration {
	rules := followingRules(disabled)
	return acautoscalingv2.HPAScalingRules().
		WithStabilizationWindowSeconds(*rules.StabilizationWindowSeconds).
		WithSelectPolicy(*rules.SelectPolicy).
		WithTolerance(*rules.Tolerance).
		WithPolicies(acautoscalingv2.HPAScalingPolicy().
			WithType(rules.Policies[0].Type).WithValue(
			rules.Policies[0].Value).WithPeriodSeconds(rules.Policies[0].PeriodSeconds))
}

// AutoscalerIsCurrent reports whether applying would change nothing. A server before 1.35 drops the tolerance: another
// apply fixes that only after an upgrade.
func AutoscalerIsCurrent(
	live *autoscalingv2.HorizontalPodAutoscaler, wanted *acautoscalingv2.HorizontalPodAutoscalerApplyConfiguration,
) (bool, error) {
	if live == nil {
		return false, nil
	}
	want, err := DecodeAutoscaler(wanted)
	if err != nil {
		return false, err
	}
	if !ToleranceHonoured(live) {
		want.Spec.Behavior.ScaleUp.Tolerance = nil
		want.Spec.Behavior.ScaleDown.Tolerance = nil
	}
	for key, value := range want.Labels {
		if live.Labels[key] != value {
			return false, nil
		}
	}
	return equality.Semantic.DeepEqual(want.Spec, live.Spec), nil
}

// DecodeAutoscaler converts an apply configuration, to apply or returned by the API server, into the object.
func DecodeAutoscaler(
	configuration *acautoscalingv2.HorizontalPodAutoscalerApplyConfiguration,
) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	text, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("encoding the autoscaler: %w", err)
	}
	var decoded autoscalingv2.HorizontalPodAutoscaler
	if err := json.Unmarshal(text, &decoded); err != nil {
		return nil, fmt.Errorf("decoding the autoscaler: %w", err)
	}
	return &decoded, nil
}

// ToleranceHonoured reports whether the server kept the tolerance. Without it the HPA ignores changes of up to 10 %.
func ToleranceHonoured(live *autoscalingv2.HorizontalPodAutoscaler) bool {
	behavior := live.Spec.Behavior
	return behavior != nil && behavior.ScaleUp != nil && behavior.ScaleUp.Tolerance != nil &&
		behavior.ScaleDown != nil && behavior.ScaleDown.Tolerance != nil
}

// FunctionMeshName is the name of the StatefulSet and the autoscaler that Function Mesh creates for an object.
func FunctionMeshName(ref v1alpha1.ScaleTargetRef) string {
	return ref.Name + "-" + strings.ToLower(ref.Kind)
}

// LabelValue shortens a name to the length of a label value.
func LabelValue(name string) string {
	if len(name) > 63 {
		name = strings.TrimRight(name[:63], "-.")
	}
	return name
}
