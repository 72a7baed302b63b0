// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
