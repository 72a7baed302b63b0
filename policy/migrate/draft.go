// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// objective is the default of latencyObjective, written out for a user to change.
const objective = time.Minute

// Limits of the API, with those of api/v1alpha1.
const (
	maxReplicas  = 10000
	maxCooldown  = 86400
	maxSchedules = 16
	maxTopics    = 100
)

// Names of fields of the spec, for comments.
const (
	fieldTarget       = "scaleTargetRef"
	fieldSubscription = "subscription"
	fieldMin          = "minReplicas"
	fieldMax          = "maxReplicas"
	fieldSchedules    = "schedules"
	fieldObjective    = "latencyObjective"
	fieldBehavior     = "behavior"
	fieldMode         = "mode"
	fieldConflict     = "conflictPolicy"
	fieldPulsar       = "pulsar"
)

// draft is the policy of one target.
type draft struct {
	namespace string
	ref       v1alpha1.ScaleTargetRef
	// existing is the policy that the target has already; nil for none.
	existing     *v1alpha1.AutoscalingPolicy
	subscription *v1alpha1.Subscription
	spec         v1alpha1.ScalingSpec
	comments     map[string][]string
	notes        []string
	origins      []Origin
	// keeps is true if an autoscaler has to go on beside the policy, and incomplete if the topics are unknown.
	keeps, incomplete bool
}

// draft returns the draft of a target, which all its autoscalers share.
func (t *translator) draft(namespace string, ref v1alpha1.ScaleTargetRef) *draft {
	key := keyOf(namespace, ref)
	if d, found := t.drafts[key]; found {
		return d
	}
	d := &draft{namespace: namespace, ref: ref, existing: t.policies[key], comments: map[string][]string{}}
	t.drafts[key] = d
	t.order = append(t.order, key)
	return d
}

func (d *draft) comment(field, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(d.comments[field], text) {
		d.comments[field] = append(d.comments[field], text)
	}
}

func (d *draft) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(d.notes, text) {
		d.notes = append(d.notes, text)
	}
}

// bound is a limit of an autoscaler, and the name of its field.
type bound struct {
	value int32
	field string
}

// boundOf is the limit in a field, or the default of the field.
func boundOf(value *int32, field string, byDefault int32) bound {
	if value == nil {
		return bound{byDefault, "The default of " + field}
	}
	return bound{*value, field}
}

// bounds widen those of the draft to include the given ones.
func (d *draft) bounds(origin Origin, low, high bound) {
	lowest, highest := max(0, low.value), min(max(1, high.value), maxReplicas)
	lowest = min(lowest, highest)
	if d.spec.MinReplicas != nil {
		lowest, highest = min(lowest, *d.spec.MinReplicas), max(highest, d.spec.MaxReplicas)
	}
	d.spec.MinReplicas, d.spec.MaxReplicas = &lowest, highest
	d.comment(fieldMin, "%s of %s.", low.field, origin.object())
	d.comment(fieldMax, "%s of %s.", high.field, origin.object())
}

// move completes the policy.
func (d *draft) move(name string) Move {
	p := &v1alpha1.AutoscalingPolicy{
		TypeMeta: metav1.TypeMeta{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindAutoscalingPolicy,
		},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name},
		Spec:       v1alpha1.AutoscalingPolicySpec{ScaleTargetRef: d.ref, Subscription: d.subscription},
	}
	d.spec.Mode, d.spec.LatencyObjective = v1alpha1.ModeRecommend, metav1.Duration{Duration: objective}
	d.comment(fieldObjective, "How long a message may take until a replica has processed it. 60s is the default, for you "+
		"to change: what scales today has no such field.")
	origins := names(d.origins)
	if d.keeps {
		d.comment(fieldMode, "It decides and writes nothing, and has to stay so while %s goes on.", origins)
	} else {
		d.spec.ConflictPolicy = v1alpha1.ConflictTakeOver
		d.comment(fieldMode, "It decides and writes nothing, so that %s goes on. Auto switches.", origins)
		d.comment(fieldConflict, "With mode Auto it suspends %s, and restores it when this policy is deleted. It does "+
			"nothing in mode Recommend.", origins)
	}
	if *d.spec.MinReplicas == d.spec.MaxReplicas {
		d.comment(fieldMax, "It equals minReplicas, so nothing scales: raise it.")
	}
	p.Spec.ScalingSpec = d.spec
	m := Move{
		Policy: p, Targets: []string{plan.Name(p.Spec)}, Comments: map[string]string{}, Notes: d.notes, Origins: d.origins,
	}
	for field, texts := range d.comments {
		m.Comments[field] = strings.Join(texts, " ")
	}
	return m
}

// names of origins, for a sentence.
func names(origins []Origin) string {
	var all []string
	for _, o := range origins {
		all = append(all, o.String())
	}
	return strings.Join(all, " and ")
}

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
