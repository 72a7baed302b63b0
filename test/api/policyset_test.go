// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const setsPath = "/apis/pulsar-autoscaler.io/v1alpha1/namespaces/" + namespace + "/autoscalingpolicysets/"

// mediaSet is the shortest spec of a set, with another selector, and changes of its template's metadata and spec.
func mediaSet(selector, metadata, scaling fields) fields {
	if selector == nil {
		selector = fields{"matchLabels": fields{"team": "media"}}
	}
	template := fields{"spec": merge(fields{"maxReplicas": int64(5)}, scaling)}
	if metadata != nil {
		template["metadata"] = metadata
	}
	return fields{"selector": selector, "template": template}
}

func trySets(t *testing.T, attempts map[string]attempt) {
	t.Helper()
	tryOf(t, v1alpha1.KindAutoscalingPolicySet, attempts)
}

func TestSelectorsOfSets(t *testing.T) {
	const empty = "selector must not be empty; to select every object, use matchExpressions: " +
		"[{key: pulsar-autoscaler.io/exclude, operator: DoesNotExist}]"
	every := fields{"matchExpressions": []any{fields{"key": "pulsar-autoscaler.io/exclude", "operator": "DoesNotExist"}}}
	trySets(t, map[string]attempt{
		"by labels":           {mediaSet(nil, nil, nil), ""},
		"by an expression":    {mediaSet(every, nil, nil), ""},
		"none":                {merge(mediaSet(nil, nil, nil), fields{"selector": nil}), "spec.selector: Required value"},
		"an empty one":        {mediaSet(fields{}, nil, nil), empty},
		"one with no labels":  {mediaSet(fields{"matchLabels": fields{}}, nil, nil), empty},
		"with no expressions": {mediaSet(fields{"matchExpressions": []any{}}, nil, nil), empty},
		"by half an expression": {
			mediaSet(fields{"matchExpressions": []any{fields{"key": "team"}}}, nil, nil), "operator: Required value",
		},
		"by an unknown field": {
			mediaSet(fields{"matchNames": []any{"a"}}, nil, nil), `unknown field "spec.selector.matchNames"`,
		},
	})
}

func TestTemplatesOfSetsHaveNoTarget(t *testing.T) {
	in := func(more fields) fields { return mediaSet(nil, nil, more) }
	trySets(t, map[string]attempt{
		"with scaleTargetRef": {
			in(fields{"scaleTargetRef": function()}), `unknown field "spec.template.spec.scaleTargetRef"`,
		},
		"with pulsarFunctionRef": {
			in(fields{"pulsarFunctionRef": fields{"name": "a"}}), `unknown field "spec.template.spec.pulsarFunctionRef"`,
		},
		"with a subscription": {
			in(fields{"subscription": fields{"name": "a"}}), `unknown field "spec.template.spec.subscription"`,
		},
		"with replicas":  {in(fields{"replicas": int64(3)}), `unknown field "spec.template.spec.replicas"`},
		"with a name":    {mediaSet(nil, fields{"name": "a"}, nil), `unknown field "spec.template.metadata.name"`},
		"without a spec": {fields{"selector": fields{"matchLabels": fields{"a": "b"}}, "template": fields{}}, "spec: Required"},
		"without a template": {
			merge(mediaSet(nil, nil, nil), fields{"template": nil}), "spec.template: Required value",
		},
	})
}

func TestTemplatesOfSetsScaleAsPoliciesDo(t *testing.T) {
	in := func(more fields) fields { return mediaSet(nil, nil, more) }
	trySets(t, map[string]attempt{
		"all that a policy has": {in(fields{
			"minReplicas": int64(0), "mode": "Recommend", "actuator": "Direct", "conflictPolicy": "TakeOver",
			"latencyObjective": "5s", "behavior": window(0), "pulsar": fields{"adminURL": "http://pulsar:8080"},
			"strategies": []any{fields{"type": "Capacity"}},
		}), ""},
		"without maxReplicas": {
			in(fields{"maxReplicas": nil}), "spec.template.spec.maxReplicas: Required value",
		},
		"min above max":          {in(fields{"minReplicas": int64(6)}), "minReplicas must not be larger than maxReplicas"},
		"a mode that is unknown": {in(fields{"mode": "On"}), `Unsupported value: "On"`},
		"an objective that is too short": {
			in(fields{"latencyObjective": "1ms"}), "latencyObjective must be from 1s to 24h",
		},
		"the same strategy twice": {
			in(fields{"strategies": []any{fields{"type": "Capacity"}, fields{"type": "Capacity"}}}),
			"strategies must not have the same type twice",
		},
	})
}

func TestMetadataOfTemplates(t *testing.T) {
	labels := func(key string, value any) fields { return mediaSet(nil, fields{"labels": fields{key: value}}, nil) }
	annotations := func(key string, value any) fields {
		return mediaSet(nil, fields{"annotations": fields{key: value}}, nil)
	}
	many := fields{}
	for i := range 33 {
		many[fmt.Sprint("k", i)] = "v"
	}
	trySets(t, map[string]attempt{
		"a label":               {labels("example.com/team", "media"), ""},
		"an empty label":        {labels("team", ""), ""},
		"a label of ours":       {labels("pulsar-autoscaler.io/a", "a"), "labels must not begin with pulsar-autoscaler.io/"},
		"a value of no label":   {labels("team", "a b"), "should match"},
		"a label too long":      {labels("team", strings.Repeat("a", 64)), "may not be more than 63"},
		"too many labels":       {mediaSet(nil, fields{"labels": many}, nil), "must have at most 32 items"},
		"an annotation":         {annotations("example.com/owner", "media team, room 7"), ""},
		"an annotation of ours": {annotations("pulsar-autoscaler.io/a", "b"), "annotations must not begin with pulsar-autoscaler.io/"},
		"a long annotation":     {annotations("a", strings.Repeat("a", 4097)), "may not be more than 4096"},
		"too many annotations":  {mediaSet(nil, fields{"annotations": many}, nil), "must have at most 32 items"},
	})
}

func TestSetsHaveTheDefaultsOfPolicies(t *testing.T) {
	onControlPlane(t)
	object := manifestOf(v1alpha1.KindAutoscalingPolicySet, "defaulted", mediaSet(nil, nil, nil))
	require.NoError(t, people.Create(t.Context(), object, client.DryRunAll))
	require.Equal(t, any(mediaSet(nil, nil, fields{
		"minReplicas": int64(1), "latencyObjective": "60s", "mode": "Auto", "actuator": "Auto", "conflictPolicy": "Refuse",
		"strategies": []any{fields{"type": "Capacity"}},
	})), object.Object["spec"])
}

// TestATargetThatAClientDoesNotCheckIsDropped: a client that does not validate strictly gets a warning.
func TestATargetThatAClientDoesNotCheckIsDropped(t *testing.T) {
	onControlPlane(t)
	spec := mediaSet(nil, nil, fields{"scaleTargetRef": function()})
	object := manifestOf(v1alpha1.KindAutoscalingPolicySet, "pruned", spec)
	require.NoError(t, people.Create(t.Context(), object, client.DryRunAll))
	scaling, _, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	require.NoError(t, err)
	require.NotContains(t, scaling, "scaleTargetRef")
}

func TestAllOfASetMayChange(t *testing.T) {
	onControlPlane(t)
	object := createOf(t, v1alpha1.KindAutoscalingPolicySet, "changing", mediaSet(nil, nil, nil))
	object.Object["spec"] = mediaSet(fields{"matchLabels": fields{"team": "sound"}}, fields{"labels": fields{"a": "b"}},
		fields{"maxReplicas": int64(9), "mode": "Paused"})
	require.NoError(t, people.Update(t.Context(), object, client.DryRunAll))
}

func TestTheTableOfSets(t *testing.T) {
	onControlPlane(t)
	object := createOf(t, v1alpha1.KindAutoscalingPolicySet, "media", mediaSet(nil, nil, nil))
	table := tableOf(t, setsPath+"media")
	narrow, wide := columns(table)
	require.Equal(t, []string{"Name", "Matched", "Governed", "Ready", "All Ready", "Mode", "Age"}, narrow)
	require.Equal(t, append(narrow, "Max", "Why"), wide)
	fresh := readRow(table)
	require.Equal(t, "<none>", fresh.narrow["Matched"], "what is unknown is not 0")

	set := &v1alpha1.AutoscalingPolicySet{}
	require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(object), set))
	before := set.DeepCopy()
	set.Status = v1alpha1.AutoscalingPolicySetStatus{
		Matched: new(int32(34)), Governed: new(int32(22)), Ready: new(int32(0)),
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Stale", Message: "22 of 22 are not ready",
			LastTransitionTime: metav1.Now(),
		}},
	}
	for i := range 100 {
		set.Status.NotReady = append(set.Status.NotReady, v1alpha1.PolicySetObject{
			Kind: "Function", Name: fmt.Sprint("f-", i), Reason: "Stale", Message: strings.Repeat("a", 256),
		})
	}
	require.NoError(t, people.Status().Patch(t.Context(), set, client.MergeFrom(before)))
	shown := readRow(tableOf(t, setsPath+"media"))
	require.Equal(t, map[string]string{
		"Name": "media", "Matched": "34", "Governed": "22", "Ready": "0", "All Ready": "False", "Mode": "Auto", "Max": "5",
		"Age": shown.wide["Age"], "Why": "22 of 22 are not ready",
	}, shown.wide)

	before = set.DeepCopy()
	set.Status.NotReady = append(set.Status.NotReady, v1alpha1.PolicySetObject{Kind: "Function", Name: "a", Reason: "B"})
	err := people.Status().Patch(t.Context(), set, client.MergeFrom(before))
	require.ErrorContains(t, err, "must have at most 100 items")
}
