// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// joiner replaces policies of a namespace that agree by a set, where a label selects their targets and nothing else.
type joiner struct {
	in Input
	// names of sets, with those to create.
	names map[string]bool
}

func newJoiner(in Input) joiner {
	j := joiner{in, map[string]bool{}}
	for i := range in.Sets {
		j.names[in.Sets[i].Namespace+" "+in.Sets[i].Name] = true
	}
	return j
}

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

func (j joiner) join(moves []Move) (joined []Move) {
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
		if one, found := j.set(group); found {
			joined = append(joined, one)
			continue
		}
		joined = append(joined, group...)
	}
	return joined
}

// set is the set for a group, if a label selects it.
func (j joiner) set(group []Move) (Move, bool) {
	if len(group) < 2 {
		return Move{}, false
	}
	namespace, targets := group[0].Policy.Namespace, map[objectKey]bool{}
	for _, m := range group {
		targets[keyOf(namespace, m.Policy.Spec.ScaleTargetRef)] = true
	}
	common := j.commonLabels(namespace, targets)
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
		if j.selects(s, targets) && !j.names[namespace+" "+s.Name] {
			j.names[namespace+" "+s.Name] = true
			return moveOf(s, group), true
		}
	}
	return Move{}, false
}

// commonLabels are the labels that all targets have.
func (j joiner) commonLabels(namespace string, targets map[objectKey]bool) (common map[string]string) {
	for _, s := range j.in.Selectables[namespace] {
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
func (j joiner) selects(s *v1alpha1.AutoscalingPolicySet, targets map[objectKey]bool) bool {
	matched := set.Observe(s, neighbors(j.in, s.Namespace), j.in.Selectables[s.Namespace]).Matched
	return len(matched) == len(targets) && !slices.ContainsFunc(matched, func(m set.MatchedObject) bool {
		return m.NotGoverned != nil || !targets[keyOf(s.Namespace, m.Ref)]
	})
}

// objectName matches names that the API server takes.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// setName is the value of the label, if it can be a name.
func setName(value string) string {
	if objectName.MatchString(value) {
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
