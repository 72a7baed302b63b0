// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
)

// migrateFixtures are the objects of the tests of package policy/migrate.
func migrateFixtures(t *testing.T) (all []client.Object) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "policy", "migrate", "testdata", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			object := &unstructured.Unstructured{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object.Object))
			all = append(all, object)
		}
	}
	return all
}

// fakeCluster is a cluster with these objects, and with Function Mesh and KEDA.
func fakeCluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	for _, kind := range append(cluster.WorkloadKinds(), cluster.KindFunctionMesh, cluster.KindScaledObject) {
		scheme.AddKnownTypeWithName(cluster.GVK(kind), &unstructured.Unstructured{})
		list := cluster.GVK(kind)
		list.Kind += "List"
		scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.AutoscalingPolicy{}).Build()
}

// translated is what the command makes of a cluster.
func translated(t *testing.T, kube client.Reader, from string) migrate.Result {
	t.Helper()
	in, err := inventory{kube, ""}.read(t.Context(), from)
	require.NoError(t, err)
	return migrate.Translate(in)
}

// TestMigrateWritesManifests has the whole output in a golden file, which test/api sends to a real API server.
func TestMigrateWritesManifests(t *testing.T) {
	result := translated(t, fakeCluster(t, migrateFixtures(t)...), fromAll)
	var out bytes.Buffer
	require.NoError(t, writeMoves(&out, result))
	golden.Equal(t, *update, "migrate.yaml", out.Bytes())

	var list corev1.List
	out.Reset()
	require.NoError(t, writeMovesJSON(&out, result.Moves))
	require.NoError(t, json.Unmarshal(out.Bytes(), &list))
	require.Len(t, list.Items, len(result.Moves))
}

func TestMigrateReadsWhatFromNames(t *testing.T) {
	for from, want := range map[string][]string{
		fromKEDA:         {"Deployment billing", "Deployment mixed", "StatefulSet invoices"},
		fromHPA:          {"Function still", "Deployment refunds"},
		fromFunctionMesh: {"Function clean of FunctionMesh etl", "Function resize", "Sink archive"},
	} {
		t.Run(from, func(t *testing.T) {
			var got []string
			for _, m := range translated(t, fakeCluster(t, migrateFixtures(t)...), from).Moves {
				got = append(got, m.Targets...)
			}
			require.ElementsMatch(t, want, got)
		})
	}
}

func TestMigrateNamesTheMissingPermission(t *testing.T) {
	_, err := kubectlPap(t, "", "migrate", "-n", "media", "--server", newAPIServer(t).url)
	require.ErrorContains(t, err, "listing functions: ")
	require.ErrorContains(t, err, "bind a ClusterRole with this permission to your user")
}

func TestMigrateNamesWhatIsNotTranslated(t *testing.T) {
	var out bytes.Buffer
	result := translated(t, fakeCluster(t, migrateFixtures(t)...), fromAll)
	err := reportUntranslated(&out, result.Untranslated)
	require.EqualError(t, err, "3 problems have no counterpart in a policy: see above")
	require.Equal(t, `Not translated:
  - ScaledObject shop/mixed: trigger 2 (cpu) has no counterpart in a policy:
    leave the policy in mode Recommend, and replace the pulsar triggers of the
    ScaledObject by one of type external-push that reads the policy
    (docs/keda.md, The decision of a policy).
  - Source media/camera: a Source without batchSourceConfig consumes nothing
    from Pulsar: scale it on its CPU.
  - HorizontalPodAutoscaler shop/by-backlog: Pods metric http_requests at 10 for
    each replica has no counterpart in a policy, which scales by what Pulsar
    reports: switch to mode Auto only if the backlog covers it.
`, out.String())
	require.NoError(t, reportUntranslated(&out, nil))
}

// migrateStep runs a step with answers.
func migrateStep(t *testing.T, kube client.Client, answers string, yes bool) (string, error) {
	t.Helper()
	var out bytes.Buffer
	in, err := inventory{kube, ""}.read(t.Context(), fromAll)
	require.NoError(t, err)
	m := mover{kube, bufio.NewReader(strings.NewReader(answers)), &out, in.Policies, yes}
	err = m.move(t.Context(), migrate.Translate(in))
	return out.String(), err
}

// modesOf are the modes of all policies and sets, by their name.
func modesOf(t *testing.T, kube client.Client) map[string]v1alpha1.Mode {
	t.Helper()
	modes := map[string]v1alpha1.Mode{}
	var policies v1alpha1.AutoscalingPolicyList
	require.NoError(t, kube.List(t.Context(), &policies))
	for i := range policies.Items {
		modes[policies.Items[i].Name] = policies.Items[i].Spec.Mode
	}
	var sets v1alpha1.AutoscalingPolicySetList
	require.NoError(t, kube.List(t.Context(), &sets))
	for i := range sets.Items {
		modes["set "+sets.Items[i].Name] = sets.Items[i].Spec.Template.Spec.Mode
	}
	return modes
}

// setDecision writes the status of a policy with a decision, as the adapter does.
func setDecision(t *testing.T, kube client.Client, name string) {
	t.Helper()
	var p v1alpha1.AutoscalingPolicy
	require.NoError(t, kube.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &p))
	p.Status.DesiredReplicas, p.Status.SpecReplicas = new(int32(4)), new(int32(6))
	p.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Recommending",
		ObservedGeneration: p.Generation,
	}}
	require.NoError(t, kube.Status().Update(t.Context(), &p))
}

func TestMigrateAppliesOneStepARun(t *testing.T) {
	kube := fakeCluster(t, migrateFixtures(t)...)

	out, err := migrateStep(t, kube, "", false)
	require.NoError(t, err)
	require.Contains(t, out, "Nothing was created.")
	require.Empty(t, modesOf(t, kube), "the end of the input is a no")
	require.Contains(t, flat(out), "- restoreToOriginalReplicaCount: set it to false in ScaledObject shop/invoices before")

	_, err = migrateStep(t, kube, "y\n", false)
	require.NoError(t, err)
	const recommend = v1alpha1.ModeRecommend
	require.Equal(t, map[string]v1alpha1.Mode{
		"billing": recommend, "mixed": recommend, "invoices": recommend, "refunds": recommend, "still": recommend,
		"etl-clean": recommend, "set media": recommend,
	}, modesOf(t, kube))

	for _, name := range []string{"billing", "invoices", "mixed"} {
		setDecision(t, kube, name)
	}
	out, err = migrateStep(t, kube, "n\nyes\n", false)
	require.ErrorContains(t, err, "pap/still in namespace media was not switched")
	require.Contains(t, flat(out), "policy still is not Ready: the adapter has not read it yet")
	require.Contains(t, out, "Deployment billing: 4 replicas decided, 6 set today by ScaledObject billing")
	require.Contains(t, flat(out), "pap/mixed in namespace shop: policy mixed has conflictPolicy Refuse: leave it in mode "+
		"Recommend if ScaledObject mixed has to go on, such as for a trigger without a counterpart; otherwise set TakeOver")
	require.NotContains(t, err.Error(), "pap/mixed", "it is as its comment says")
	require.Contains(t, out, "kubectl -n shop delete pap invoices")
	modes := modesOf(t, kube)
	require.Equal(t, recommend, modes["billing"], "the answer was no")
	require.Equal(t, v1alpha1.ModeAuto, modes["invoices"])
	require.Equal(t, recommend, modes["mixed"])

	out, err = migrateStep(t, kube, "", true)
	require.ErrorContains(t, err, "pap/still in namespace media was not switched")
	require.Contains(t, flat(out), "pap/invoices in namespace shop: its mode is Auto already. To stay, delete from your "+
		"manifests: ScaledObject shop/invoices, once restoreToOriginalReplicaCount is false")
	require.Equal(t, v1alpha1.ModeAuto, modesOf(t, kube)["billing"])
}

func TestMigrateReplacesNothing(t *testing.T) {
	kube := fakeCluster(t, migrateFixtures(t)...)
	first, moves := translated(t, kube, fromKEDA).Moves[:1], translated(t, kube, fromKEDA).Moves
	var out bytes.Buffer
	m := mover{kube, bufio.NewReader(strings.NewReader("")), &out, nil, true}
	require.NoError(t, m.create(t.Context(), first))
	require.Contains(t, out.String(), "pap/billing in namespace shop for Deployment billing\n")

	err := m.create(t.Context(), moves)
	require.ErrorContains(t, err, "pap/billing was created in namespace shop meanwhile, and is as it was: run this again")
	require.Len(t, modesOf(t, kube), len(moves), "the others are created")
}

// mediaPolicy is a policy of set media that is ready to be switched.
func mediaPolicy(name string) v1alpha1.AutoscalingPolicy {
	p := v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "media", Name: name, Generation: 2,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindAutoscalingPolicySet, Name: "media",
				Controller: new(true),
			}},
		},
	}
	p.Spec.Mode, p.Spec.ConflictPolicy = v1alpha1.ModeRecommend, v1alpha1.ConflictTakeOver
	p.Status.DesiredReplicas = new(int32(2))
	p.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2},
		{
			Type: v1alpha1.ConditionAutoscalerApplied, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonRecommendOnly, ObservedGeneration: 2,
		},
	}
	return p
}

// TestMigrateSwitchesASetAsAWhole has a set with a policy beside an autoscaler, and one without.
func TestMigrateSwitchesASetAsAWhole(t *testing.T) {
	type policy = v1alpha1.AutoscalingPolicy
	for name, test := range map[string]struct {
		// change the policy that no other autoscaler concerns.
		change func(*policy)
		// want is a part of the output, and remains of the error; empty for a switch.
		want, remains string
	}{
		"all are ready": {change: func(*policy) {}, want: "kubectl -n media delete paps media"},
		"one is in mode Auto already": {
			change: func(p *policy) { p.Spec.Mode, p.Status = v1alpha1.ModeAuto, v1alpha1.AutoscalingPolicyStatus{} },
			want:   "kubectl -n media delete paps media",
		},
		"one has no decision": {
			change: func(p *policy) { p.Status.DesiredReplicas = nil },
			want:   "policy two has no decision yet", remains: "paps/media in namespace media was not switched",
		},
		"one is switched off": {
			change: func(p *policy) {
				p.Status.DesiredReplicas = nil
				p.Status.Decision = &v1alpha1.Decision{Hold: &v1alpha1.Hold{Reason: "SwitchedOff", Message: "replicas are 0"}}
			},
			want: "policy two would not scale in mode Auto: replicas are 0", remains: "was not switched",
		},
		"one is not Ready": {
			change: func(p *policy) {
				p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = metav1.ConditionFalse, "TargetNotFound"
				p.Status.Conditions[0].Message = "it does not exist"
			},
			want: "policy two is not Ready: TargetNotFound: it does not exist", remains: "was not switched",
		},
		"one was Ready before its last change": {
			change: func(p *policy) { p.Generation = 3 },
			want:   "policy two is not Ready: the adapter has not read it yet", remains: "was not switched",
		},
		"one would not scale": {
			change: func(p *policy) {
				p.Status.Conditions[1].Reason = "OlderPolicy"
				p.Status.Conditions[1].Message = "policy zero scales it"
			},
			want:    "policy two would not scale in mode Auto: OlderPolicy: policy zero scales it",
			remains: "was not switched",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.AutoscalingPolicySet{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "media"}}
			s.Spec.Template.Spec.Mode = v1alpha1.ModeRecommend
			kube, one, two := fakeCluster(t, s), mediaPolicy("one"), mediaPolicy("two")
			test.change(&two)
			var out bytes.Buffer
			m := mover{kube, bufio.NewReader(strings.NewReader("")), &out, []policy{two, one}, true}

			err := m.switchOver(t.Context(), []migrate.Begun{{Policy: one, Origins: []migrate.Origin{{Kind: "Function"}}}})
			require.Contains(t, flat(out.String()), test.want)
			if test.remains != "" {
				require.ErrorContains(t, err, test.remains)
				require.Equal(t, v1alpha1.ModeRecommend, modesOf(t, kube)["set media"])
				return
			}
			require.NoError(t, err)
			require.Equal(t, v1alpha1.ModeAuto, modesOf(t, kube)["set media"])
		})
	}
}

func TestMigrateRefusesFlagsThatContradict(t *testing.T) {
	for name, test := range map[string]struct{ args, want string }{
		"an unknown source":       {"--from vpa", "it must be all, keda, hpa or function-mesh"},
		"yes without apply":       {"--yes", "add --apply"},
		"apply with a format":     {"--apply -o json", "leave out one of them"},
		"a kubeconfig without it": {"--kubeconfig does-not-exist", "reading the kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubectlPap(t, "", append([]string{"migrate"}, strings.Fields(test.args)...)...)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestMigrateDiscoversThatKindsAreAbsent reads a server that has policies and no other kind.
func TestMigrateDiscoversThatKindsAreAbsent(t *testing.T) {
	server := newAPIServer(t)
	server.alone = true
	out, err := kubectlPap(t, "", "migrate", "--server", server.url, "-n", "media")
	require.NoError(t, err)
	require.Empty(t, out)
	require.Equal(t, []string{"/apis/pulsar-autoscaler.io/v1alpha1/namespaces/media/autoscalingpolicies?"}, server.reads())

	out, err = kubectlPap(t, "", "migrate", "--server", server.url, "-n", "media", "-o", "json")
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []}`, out)
}
