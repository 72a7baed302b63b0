// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// selectedBy are the names of sets by the targets that they make policies for.
func selectedBy(in Input) map[objectKey]string {
	selected := map[objectKey]string{}
	for i := range in.Sets {
		s := &in.Sets[i]
		for _, m := range set.Observe(s, neighbors(in, s.Namespace), in.Selectables[s.Namespace]).Matched {
			if m.NotGoverned == nil && s.DeletionTimestamp == nil {
				selected[keyOf(s.Namespace, m.Ref)] = s.Name
			}
		}
	}
	return selected
}

// neighbors are the sets and policies of a namespace.
func neighbors(in Input, namespace string) set.Neighbors {
	return set.Neighbors{
		Policies: slices.DeleteFunc(slices.Clone(in.Policies),
			func(p v1alpha1.AutoscalingPolicy) bool { return p.Namespace != namespace }),
		Sets: slices.DeleteFunc(slices.Clone(in.Sets),
			func(s v1alpha1.AutoscalingPolicySet) bool { return s.Namespace != namespace }),
	}
}

// join replaces policies of a namespace that agree by a set, where a label selects their targets and nothing else.
func join(in Input, moves []Move) (joined []Move) {
	taken := map[string]bool{} // names of sets, with those to create
	for i := range in.Sets {
		taken[in.Sets[i].Namespace+" "+in.Sets[i].Name] = true
	}
	groups := map[string][]Move{}
	for _, m := range moves {
		key, err := json.Marshal(m.Policy.Spec.ScalingSpec)
		if err != nil || m.Policy.Spec.Subscription != nil || m.Spec().ConflictPolicy != v1alpha1.ConflictTakeOver {
			joined = append(joined, m)
			continue
		}
		id := m.Policy.Namespace + " " + string(key)
		groups[id] = append(groups[id], m)
	}
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		group := groups[id]
		if one, found := in.setFor(group, taken); found {
			joined = append(joined, one)
			continue
		}
		joined = append(joined, group...)
	}
	return joined
}

// setFor is the set for a group, if a label selects it.
func (in Input) setFor(group []Move, taken map[string]bool) (Move, bool) {
	if len(group) < 2 {
		return Move{}, false
	}
	namespace, targets := group[0].Policy.Namespace, map[objectKey]bool{}
	for _, m := range group {
		targets[keyOf(namespace, m.Policy.Spec.ScaleTargetRef)] = true
	}
	common := in.commonLabels(namespace, targets)
	for _, label := range slices.Sorted(maps.Keys(common)) {
		s := &v1alpha1.AutoscalingPolicySet{
			TypeMeta: metav1.TypeMeta{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindAutoscalingPolicySet,
			},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName(common[label])},
			Spec: v1alpha1.AutoscalingPolicySetSpec{
				Selector: metav1.LabelSelector{MatchLabels: map[string]string{label: common[label]}},
				Template: v1alpha1.AutoscalingPolicyTemplate{Spec: group[0].Policy.Spec.ScalingSpec},
			},
		}
		if in.selects(s, targets) && !taken[namespace+" "+s.Name] {
			taken[namespace+" "+s.Name] = true
			return moveOf(s, group), true
		}
	}
	return Move{}, false
}

// commonLabels are the labels that all targets have.
func (in Input) commonLabels(namespace string, targets map[objectKey]bool) (common map[string]string) {
	for _, s := range in.Selectables[namespace] {
		switch {
		case !targets[keyOf(namespace, s.Ref)] || s.Mesh != "":
		case common == nil:
			common = maps.Clone(s.Labels)
		default:
			maps.DeleteFunc(common, func(key, value string) bool { return s.Labels[key] != value })
		}
	}
	return common
}

// selects reports whether a set would govern the targets and nothing else.
func (in Input) selects(s *v1alpha1.AutoscalingPolicySet, targets map[objectKey]bool) bool {
	matched := set.Observe(s, neighbors(in, s.Namespace), in.Selectables[s.Namespace]).Matched
	return len(matched) == len(targets) && !slices.ContainsFunc(matched, func(m set.MatchedObject) bool {
		return m.NotGoverned != nil || !targets[keyOf(s.Namespace, m.Ref)]
	})
}

// setName is the value of the label, if it can be a name.
func setName(value string) string {
	if len(validation.IsDNS1123Label(value)) == 0 {
		return value
	}
	return "migrated"
}

// moveOf is the set with what is to be known about all policies of the group.
func moveOf(s *v1alpha1.AutoscalingPolicySet, group []Move) Move {
	m := Move{Set: s, Comments: maps.Clone(group[0].Comments)}
	maps.Copy(m.Comments, map[string]string{
		fieldMode:     "The policies decide and write nothing, so that what scales today goes on. Auto switches.",
		fieldConflict: "With mode Auto each policy suspends what scales its target, and restores it when it is deleted.",
		fieldMin:      "All targets agree on minReplicas.",
		fieldMax:      "All targets agree on maxReplicas.",
	})
	for _, one := range group {
		m.Targets = append(m.Targets, one.Targets...)
		m.Origins = append(m.Origins, one.Origins...)
		for _, note := range one.Notes {
			if !slices.Contains(m.Notes, note) {
				m.Notes = append(m.Notes, note)
			}
		}
	}
	return m
}
