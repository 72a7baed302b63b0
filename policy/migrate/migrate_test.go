// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// objects of a text.
func objects(t *testing.T, text string) (all []unstructured.Unstructured) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object unstructured.Unstructured
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object.Object), document)
		all = append(all, object)
	}
	return all
}

func fileOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	require.NoError(t, err)
	return string(text)
}

// input are the files, as the command reads them.
func input(t *testing.T, more ...string) migrate.Input {
	t.Helper()
	all := strings.Join(append(more, fileOf(t, "workloads"), fileOf(t, "functionmesh")), "\n---\n")
	return inputOf(t, all)
}

func inputOf(t *testing.T, text string) migrate.Input {
	t.Helper()
	in := migrate.Input{MaxReplicas: true, Selectables: map[string][]set.Selectable{}}
	for _, object := range objects(t, text) {
		switch object.GetKind() {
		case "ScaledObject":
			in.ScaledObjects = append(in.ScaledObjects, object)
			continue
		case "HorizontalPodAutoscaler":
			var hpa autoscalingv2.HorizontalPodAutoscaler
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &hpa))
			in.Autoscalers = append(in.Autoscalers, hpa)
			continue
		case "Deployment":
			in.Workloads = append(in.Workloads, object)
			continue
		case "StatefulSet":
			in.Workloads = append(in.Workloads, object)
		default:
			in.Components = append(in.Components, object)
		}
		namespace := object.GetNamespace()
		in.Selectables[namespace] = append(in.Selectables[namespace], target.Selectables(target.Decode(&object))...)
	}
	return in
}

// named returns the move of a policy or set.
func named(t *testing.T, result migrate.Result, name string) migrate.Move {
	t.Helper()
	var all []string
	for _, m := range result.Moves {
		got := ""
		if m.Policy != nil {
			got = m.Policy.Name
		}
		if m.Set != nil {
			got = "set " + m.Set.Name
		}
		if got == name {
			return m
		}
		all = append(all, got)
	}
	require.Contains(t, all, name)
	return migrate.Move{}
}

// What becomes of the files of testdata is in the golden file of cmd/kubectl-pap, with a set of these.
func TestPoliciesThatAgreeBecomeNoSet(t *testing.T) {
	require.NotNil(t, named(t, migrate.Translate(input(t)), "set media").Set)
	t.Run("not where the label selects another Function", func(t *testing.T) {
		in := input(t, `{apiVersion: compute.functionmesh.io/v1alpha1, kind: Function,
			metadata: {name: third, namespace: media, labels: {team: media}}, spec: {name: third}}`)
		result := migrate.Translate(in)
		require.Nil(t, named(t, result, "resize").Set)
		require.Nil(t, named(t, result, "archive").Set)
	})
	existing := v1alpha1.AutoscalingPolicySet{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "media"}}
	t.Run("not in place of a set of that name", func(t *testing.T) {
		in := input(t)
		in.Sets = []v1alpha1.AutoscalingPolicySet{existing}
		in.Sets[0].Spec.Selector.MatchLabels = map[string]string{"team": "another"}
		result := migrate.Translate(in)
		require.Nil(t, named(t, result, "resize").Set)
		require.Nil(t, named(t, result, "archive").Set)
	})
	t.Run("not before a set that selects them has made its policies", func(t *testing.T) {
		in := input(t)
		in.Sets = []v1alpha1.AutoscalingPolicySet{existing}
		in.Sets[0].Spec.Selector.MatchLabels = map[string]string{"team": "media"}
		result := migrate.Translate(in)
		for _, m := range result.Moves {
			require.NotSubset(t, []string{"Function resize", "Sink archive"}, m.Targets)
		}
		require.Contains(t, result.Untranslated, migrate.Problem{
			Object: "Function media/resize", Message: "AutoscalingPolicySet media selects it, and has no policy for it yet: " +
				"wait until the adapter has made it",
		})
	})
}

// hpaOf is an autoscaler of a target.
func hpaOf(kind, name string, more ...string) string {
	return `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: hpa, namespace: media},
		spec: {scaleTargetRef: {apiVersion: ` + apiVersion(kind) + `, kind: ` + kind + `, name: ` + name + `},
		maxReplicas: 9` + strings.Join(more, "") + `}}`
}

func apiVersion(kind string) string {
	if kind == "StatefulSet" || kind == "Deployment" {
		return "apps/v1"
	}
	return "compute.functionmesh.io/v1alpha1"
}

func TestATargetHasOnePolicy(t *testing.T) {
	for name, hpa := range map[string]string{
		"with an HPA of the Function":        hpaOf("Function", "resize"),
		"with an HPA of the StatefulSet":     hpaOf("StatefulSet", "resize-function"),
		"with limits that include all of it": hpaOf("Function", "resize", ", minReplicas: 3"),
	} {
		t.Run(name, func(t *testing.T) {
			resize := named(t, migrate.Translate(input(t, hpa)), "resize")
			require.Equal(t, "Function", resize.Policy.Spec.ScaleTargetRef.Kind)
			require.ElementsMatch(t, []string{"maxReplicas of Function resize", "HorizontalPodAutoscaler hpa"},
				originNames(resize))
			require.Equal(t, int32(1), *resize.Policy.Spec.MinReplicas)
			require.Equal(t, int32(9), resize.Policy.Spec.MaxReplicas)
		})
	}
	t.Run("of the entry of a FunctionMesh", func(t *testing.T) {
		clean := named(t, migrate.Translate(input(t, hpaOf("Function", "etl-clean"))), "etl-clean")
		require.Equal(t, "FunctionMesh", clean.Policy.Spec.ScaleTargetRef.Kind)
		require.Len(t, clean.Origins, 2)
	})
	t.Run("or keeps the one that it has", func(t *testing.T) {
		in := input(t, hpaOf("Function", "resize"))
		in.Policies = []v1alpha1.AutoscalingPolicy{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "mine"},
			Spec: v1alpha1.AutoscalingPolicySpec{ScaleTargetRef: v1alpha1.ScaleTargetRef{
				APIVersion: apiVersion("Function"), Kind: "Function", Name: "resize",
			}},
		}}
		result := migrate.Translate(in)
		require.Len(t, result.Begun, 1)
		require.Equal(t, "mine", result.Begun[0].Policy.Name)
		require.Len(t, result.Begun[0].Origins, 2)
	})
}

// scaledObject scales Deployment one.
func scaledObject(triggers, more string) string {
	return `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: one, namespace: media},
		spec: {scaleTargetRef: {name: one}, triggers: [` + triggers + `]` + more + `}}`
}

func pulsar(metadata string) string { return `{type: pulsar, metadata: {` + metadata + `}}` }

// address is that of a Pulsar, in metadata.
const address = `adminURL: "http://b:8080", `

func TestWhatCannotBeTranslatedIsNamed(t *testing.T) {
	good := pulsar(address + `topic: a/b/c, subscription: s`)
	for name, test := range map[string]struct {
		object, want string
		// keeps is true if the ScaledObject has to go on for another trigger than the good one.
		keeps bool
	}{
		"a target that does not exist": {hpaOf("Function", "gone"), "Function gone does not exist", false},
		"a metric of Pulsar that names no subscription": {
			hpaOf("Deployment", "web", `, metrics: [{type: External, external: {metric: {name: pulsar_rate_in},
				target: {type: Value, value: "3"}}}]`), "its metrics name no topic and no subscription", false,
		},
		"an HPA that another controller created": {
			strings.Replace(hpaOf("Function", "still"), "name: hpa,", "name: hpa, ownerReferences: [{apiVersion: a.io/v1, "+
				"kind: Rollout, name: r, uid: a, controller: true}],", 1),
			"Rollout r created it and would recreate it", false,
		},
		"more policies of scale-up than a policy has": {
			hpaOf("Function", "still", `, behavior: {scaleUp: {policies: [`+
				strings.Repeat(`{type: Pods, value: 1, periodSeconds: 60},`, 5)+`]}}`),
			"behavior.scaleUp has 5 policies, and a policy has at most 4", false,
		},
		"a formula": {
			scaledObject(good, `, advanced: {scalingModifiers: {formula: a}}`),
			"advanced.scalingModifiers has a formula", true,
		},
		"a second subscription": {
			scaledObject(good+`, `+pulsar(address+`topic: a/b/c, subscription: other`), ""),
			"trigger 2 (pulsar) reads subscription other, and a policy has one: here it is s", true,
		},
		"a second Pulsar": {
			scaledObject(good+`, `+pulsar(`adminURL: "http://c:8080", topic: a/b/d, subscription: s`), ""),
			"reads from http://c:8080, and a policy from one Pulsar", true,
		},
		"a variable without a literal value": {
			scaledObject(good+`, `+pulsar(address+`topicFromEnv: TOPIC, subscription: s`), ""),
			"takes topic from variable TOPIC of the container, with no literal value there", true,
		},
		"a topic without a namespace": {
			scaledObject(good+`, `+pulsar(address+`topic: orders, subscription: s`), ""),
			"which is not tenant/namespace/topic", true,
		},
		"no topic but one without a namespace": {
			scaledObject(pulsar(address+`topic: orders, subscription: s`), ""), "which is not tenant/namespace/topic", false,
		},
		"no topic but one in a variable": {
			scaledObject(pulsar(address+`topicFromEnv: TOPIC, subscription: s`), ""), "takes topic from variable TOPIC", false,
		},
		"an admin URL with a path": {
			scaledObject(pulsar(`adminURL: "http://b:8080/pulsar", topic: a/b/c, subscription: s`), ""),
			"which is not http://host:port", false,
		},
		"a cron trigger without a time": {
			scaledObject(good+
				`, {type: cron, metadata: {timezone: Mars/Olympus, start: 0 8 * * *, end: 0 9 * * *, desiredReplicas: "2"}}`, ""),
			"trigger 2 (cron) is no schedule: ", true,
		},
		"a cron trigger with nothing but a time zone": {
			scaledObject(good+
				`, {type: cron, metadata: {timezone: UTC, start: TZ=UTC, end: 0 9 * * *, desiredReplicas: "2"}}`, ""),
			`start "TZ=UTC" is no cron expression of five fields`, true,
		},
		"a cron trigger with a time zone in a time": {
			scaledObject(good+`, {type: cron, metadata: {timezone: UTC,
				start: 0 8 * * *, end: CRON_TZ=UTC 0 9 * * *, desiredReplicas: "2"}}`, ""),
			`end "CRON_TZ=UTC 0 9 * * *" is no cron expression of five fields`, true,
		},
		"a query of Pulsar's metrics": {
			scaledObject(`{type: prometheus, metadata: {query: sum(pulsar_subscription_back_log)}}`, ""),
			"it has no trigger of type pulsar (but prometheus)", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, test.object)
			in.MaxReplicas = false
			result := migrate.Translate(in)
			require.Len(t, result.Untranslated, 1)
			require.Contains(t, result.Untranslated[0].Message, test.want)
			if test.keeps {
				one := named(t, result, "one")
				require.Empty(t, one.Policy.Spec.ConflictPolicy)
				require.Equal(t, []v1alpha1.TopicName{"a/b/c"}, one.Policy.Spec.Subscription.Topics)
			}
			for _, m := range result.Moves {
				require.True(t, m.Policy.Spec.Subscription == nil || len(m.Policy.Spec.Subscription.Topics) > 0)
			}
		})
	}
}

func TestLimitsOfChangesAreKept(t *testing.T) {
	const (
		upDefault   = `scaleUp: {selectPolicy: Max, stabilizationWindowSeconds: 0, policies: [` + upPolicies + `]}`
		downDefault = `scaleDown: {selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}`
	)
	type behavior = v1alpha1.Behavior
	for name, test := range map[string]struct {
		behavior string
		want     *behavior
	}{
		"none, by what the API server writes": {upDefault + `, ` + downDefault, nil},
		"none, without a field":               {`scaleUp: {}, scaleDown: {}`, nil},
		"a window of scale-up, without the policies that the API server writes": {
			`scaleUp: {stabilizationWindowSeconds: 60, policies: [` + upPolicies + `]}`,
			&behavior{ScaleUp: &v1alpha1.ScaleUpRules{StabilizationWindowSeconds: new(int32(60))}},
		},
		"policies of scale-up, of which the smallest counts": {
			`scaleUp: {selectPolicy: Min, policies: [{type: Percent, value: 50000, periodSeconds: 30}]}`,
			&behavior{ScaleUp: &v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectMin, Policies: []v1alpha1.ScalingPolicy{
				{Type: v1alpha1.PercentScalingPolicy, Value: 10000, PeriodSeconds: 30},
			}}},
		},
		"no scale-up, and no scale-down after a window": {
			`scaleUp: {selectPolicy: Disabled}, scaleDown: {selectPolicy: Disabled, stabilizationWindowSeconds: 90}`,
			&behavior{
				ScaleUp: &v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectDisabled},
				ScaleDown: &v1alpha1.ScaleDownRules{
					SelectPolicy: v1alpha1.SelectDisabled, StabilizationWindowSeconds: new(int32(90)),
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, hpaOf("Function", "still", `, behavior: {`+test.behavior+`}`))
			in.MaxReplicas = false
			result := migrate.Translate(in)
			require.Empty(t, result.Untranslated)
			still := named(t, result, "still")
			require.Equal(t, test.want, still.Policy.Spec.Behavior)
			require.NotContains(t, strings.Join(still.Notes, " "), "behavior.")
			require.Equal(t, test.want != nil, still.Comments["behavior"] != "")
		})
	}
}

// upPolicies are those of scale-up by default.
const upPolicies = `{type: Percent, value: 100, periodSeconds: 15}, {type: Pods, value: 4, periodSeconds: 15}`

func TestPausesOfAScaledObjectAreKept(t *testing.T) {
	const prefix = "autoscaling.keda.sh/"
	for name, test := range map[string]struct {
		annotations   string
		want          *v1alpha1.Behavior
		note, comment string
		paused        bool
	}{
		"both directions": {
			annotations: prefix + `paused: "true"`, note: "ScaledObject one is paused now, so nothing scales the target. The " +
				"policy does so with mode Auto: to keep it so, set mode Paused.",
			paused: true,
		},
		"both directions, by a policy that took it over": {
			annotations: prefix + `paused: "true", pulsar-autoscaler.io/paused-by: two`, note: "ScaledObject one is paused " +
				"now, so nothing scales the target. The policy does so with mode Auto: to keep it so, set mode Paused.",
		},
		"not by false": {annotations: prefix + `paused: "false"`},
		"at a number": {
			annotations: prefix + `paused-replicas: "8"`, note: "ScaledObject one is paused now at 8 replicas. The policy " +
				"scales the target with mode Auto: to keep it so, set minReplicas and maxReplicas 8.",
			paused: true,
		},
		"at a number that is empty": {
			annotations: prefix + `paused-replicas: ""`, note: "ScaledObject one is paused now, so nothing scales the target. " +
				"The policy does so with mode Auto: to keep it so, set mode Paused.",
			paused: true,
		},
		"scale-down": {
			annotations: prefix + `paused-scale-in: "true"`,
			want:        &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{SelectPolicy: v1alpha1.SelectDisabled}},
			comment:     "No replicas are removed, by annotation paused-scale-in of ScaledObject one.",
		},
		"scale-up": {
			annotations: prefix + `paused-scale-out: "true"`,
			want:        &v1alpha1.Behavior{ScaleUp: &v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectDisabled}},
			comment:     "No replicas are added, by annotation paused-scale-out of ScaledObject one.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := named(t, migrate.Translate(inputOf(t, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject,
				metadata: {name: one, namespace: media, annotations: {`+test.annotations+`}},
				spec: {scaleTargetRef: {name: one}, triggers: [{type: pulsar,
				metadata: {adminURL: "http://b:8080", topic: a/b/c, subscription: s}}]}}`)), "one")
			require.Equal(t, test.want, one.Policy.Spec.Behavior)
			require.Equal(t, test.comment, one.Comments["behavior"])
			require.Equal(t, test.note, strings.Join(one.Notes, "\n"))
			require.Equal(t, test.paused, one.Origins[0].Paused)
		})
	}
}

func TestAutoscalersOfPoliciesAreLeftAlone(t *testing.T) {
	owner := `ownerReferences: [{apiVersion: pulsar-autoscaler.io/v1alpha1, kind: AutoscalingPolicy, name: one, uid: a,
		controller: true}]`
	in := inputOf(t, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject,
			metadata: {name: one, namespace: media, `+owner+`}, spec: {scaleTargetRef: {name: one}, triggers: [{type: pulsar, metadata: {topic: a/b/c}}]}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: `+plan.AutoscalerName("one")+
		`, namespace: media, `+owner+`}, spec: {scaleTargetRef: {kind: Function, name: one}, maxReplicas: 1}}`)
	require.Len(t, in.ScaledObjects, 1)
	require.Len(t, in.Autoscalers, 1)
	require.Equal(t, migrate.Result{}, migrate.Translate(in))
}

// TestTheGuideHasAllKeys keeps the table of the guide and the translation the same.
func TestTheGuideHasAllKeys(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "from-keda.md"))
	require.NoError(t, err)
	for _, key := range migrate.PulsarKeys() {
		found, known := migrate.FindPulsarKey(key.Name)
		require.True(t, known)
		require.Equal(t, key, found)
		inSpec := slices.Contains([]string{"topic", "subscription", "adminURL"}, key.Name)
		require.Equal(t, inSpec, key.InPolicy == "", key.Name)
		require.Contains(t, string(text), "`"+key.Name+"`")
	}
}

func originNames(m migrate.Move) (all []string) {
	for _, o := range m.Origins {
		all = append(all, o.String())
	}
	return all
}
