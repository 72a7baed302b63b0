// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Limits of the rules in the API, with those of api/v1alpha1.
const (
	maxPolicies    = 4
	maxPolicyValue = 10000
)

// isDefault reports whether policies are what the API server writes where a user set another field of behavior, in any
// order.
//
// Source: Kubernetes, pkg/apis/autoscaling/v2/defaults.go.
func isDefault(policies []autoscalingv2.HPAScalingPolicy, defaults ...autoscalingv2.HPAScalingPolicy) bool {
	return len(policies) == 0 || len(policies) == len(defaults) &&
		!slices.ContainsFunc(defaults, func(one autoscalingv2.HPAScalingPolicy) bool {
			return !slices.Contains(policies, one)
		})
}

// within15s allows that many pods or percent more or fewer within 15 s.
func within15s(of autoscalingv2.HPAScalingPolicyType, value int32) autoscalingv2.HPAScalingPolicy {
	return autoscalingv2.HPAScalingPolicy{Type: of, Value: value, PeriodSeconds: 15}
}

// behavior keeps the limits that a user set.
func (t *translator) behavior(d *draft, origin Origin, title string,
	behavior *autoscalingv2.HorizontalPodAutoscalerBehavior,
) {
	if behavior == nil {
		return
	}
	if up := behavior.ScaleUp; up != nil {
		t.limitUp(d, origin, title, *up)
	}
	down := behavior.ScaleDown
	if down == nil {
		return
	}
	if isDisabled(*down) {
		d.keepReplicas("behavior.scaleDown", origin)
	}
	if !isDefault(down.Policies, within15s(autoscalingv2.PercentScalingPolicy, 100)) {
		d.note("behavior.scaleDown.policies: not needed. A policy removes replicas when keeping them costs more than a " +
			"change.")
	}
	if down.StabilizationWindowSeconds != nil {
		d.stabilize(origin, *down.StabilizationWindowSeconds)
	}
}

func isDisabled(rules autoscalingv2.HPAScalingRules) bool {
	return rules.SelectPolicy != nil && *rules.SelectPolicy == autoscalingv2.DisabledPolicySelect
}

// limitUp keeps the fields of scaleUp that differ from the defaults. A policy has no limit by default.
func (t *translator) limitUp(d *draft, origin Origin, title string, up autoscalingv2.HPAScalingRules) {
	if isDisabled(up) {
		d.addNone("behavior.scaleUp", origin)
		return
	}
	var rules v1alpha1.ScaleUpRules
	if window := up.StabilizationWindowSeconds; window != nil && *window > 0 {
		rules.StabilizationWindowSeconds = window
	}
	least := up.SelectPolicy != nil && *up.SelectPolicy == autoscalingv2.MinChangePolicySelect
	if least || !isDefault(up.Policies, within15s(autoscalingv2.PodsScalingPolicy, 4),
		within15s(autoscalingv2.PercentScalingPolicy, 100)) {
		for _, one := range up.Policies[:min(maxPolicies, len(up.Policies))] {
			rules.Policies = append(rules.Policies, v1alpha1.ScalingPolicy{
				Type: v1alpha1.ScalingPolicyType(one.Type), Value: min(one.Value, maxPolicyValue),
				PeriodSeconds: one.PeriodSeconds,
			})
		}
	}
	if rules.StabilizationWindowSeconds == nil && rules.Policies == nil {
		return
	}
	if least {
		rules.SelectPolicy = v1alpha1.SelectMin
	}
	if len(up.Policies) > maxPolicies {
		t.problem(title, "behavior.scaleUp has %d policies, and a policy has at most %d: it has the first "+
			"ones, choose which it needs", len(up.Policies), maxPolicies)
	}
	if kept := d.scaleUp(); kept.SelectPolicy != v1alpha1.SelectDisabled {
		*kept = rules
	}
	d.comment(fieldBehavior, "scaleUp is behavior.scaleUp of %s. Without it a policy adds replicas in one step.",
		origin.object())
}

// addNone keeps that no replicas are added.
func (d *draft) addNone(what string, origin Origin) {
	*d.scaleUp() = v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectDisabled}
	d.comment(fieldBehavior, "No replicas are added, by %s of %s.", what, origin.object())
}

// keepReplicas keeps that no replicas are removed.
func (d *draft) keepReplicas(what string, origin Origin) {
	d.scaleDown().SelectPolicy = v1alpha1.SelectDisabled
	d.comment(fieldBehavior, "No replicas are removed, by %s of %s.", what, origin.object())
}

// stabilize keeps a stabilization window that a user set.
func (d *draft) stabilize(origin Origin, seconds int32) {
	d.scaleDown().StabilizationWindowSeconds = &seconds
	d.comment(fieldBehavior, "stabilizationWindowSeconds of %s. The default of a policy is 30: it removes replicas when "+
		"keeping them costs more than a change.", origin.object())
}

func (d *draft) scaleUp() *v1alpha1.ScaleUpRules {
	d.spec.Behavior = cmp.Or(d.spec.Behavior, &v1alpha1.Behavior{})
	d.spec.Behavior.ScaleUp = cmp.Or(d.spec.Behavior.ScaleUp, &v1alpha1.ScaleUpRules{})
	return d.spec.Behavior.ScaleUp
}

func (d *draft) scaleDown() *v1alpha1.ScaleDownRules {
	d.spec.Behavior = cmp.Or(d.spec.Behavior, &v1alpha1.Behavior{})
	d.spec.Behavior.ScaleDown = cmp.Or(d.spec.Behavior.ScaleDown, &v1alpha1.ScaleDownRules{})
	return d.spec.Behavior.ScaleDown
}
