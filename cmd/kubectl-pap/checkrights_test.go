// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func TestCheckInstallNamesMissingRights(t *testing.T) {
	for name, test := range map[string]struct{ denied, want string }{
		"of the adapter's role": {
			"watch functions", "error rights: ServiceAccount pulsar-autoscaler/adapter may not watch functions " +
				"(upgrade the chart, or apply deploy/rbac/clusterrole.yaml) in all namespaces;",
		},
		"of a value that is on by default": {
			"list pods", "warning rights: ServiceAccount pulsar-autoscaler/adapter may not list pods " +
				"(set rbac.pods of the chart, or apply deploy/rbac/pods.yaml) in all namespaces;",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := installed(t)
			server.denied = append(server.denied, test.denied)
			out, _ := kubectlPap(t, "", "check", "--install", "--server", server.url)
			require.Contains(t, flat(out), test.want)
		})
	}
}

// The chart's files are the truth about who grants what.
func TestTheFilesGrantTheRights(t *testing.T) {
	p := judgedPolicy()
	p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
	for _, r := range append(allRights(), policyRights(kindsOf(true), &p)...) {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "rbac", r.file))
		require.NoError(t, err)
		found := false
		for _, document := range strings.Split(string(text), "\n---\n") {
			var role rbacv1.ClusterRole
			require.NoError(t, yaml.Unmarshal([]byte(document), &role))
			found = found || role.Kind == "ClusterRole" && grants(role.Rules, r)
		}
		require.True(t, found, "%s does not grant %s", r.file, r)
	}
}

func grants(rules []rbacv1.PolicyRule, r right) bool {
	resource := strings.TrimPrefix(r.String(), r.verb+" ")
	for _, rule := range rules {
		if slices.Contains(rule.APIGroups, r.group) && slices.Contains(rule.Resources, resource) &&
			slices.Contains(rule.Verbs, r.verb) {
			return true
		}
	}
	return false
}

// kindsOf a cluster with Function Mesh.
func kindsOf(withKEDA bool) meta.RESTMapper {
	kinds := meta.NewDefaultRESTMapper(nil)
	for kind, resource := range map[string]schema.GroupVersionResource{
		"Function":     {Group: "compute.functionmesh.io", Version: "v1alpha1", Resource: "functions"},
		"FunctionMesh": {Group: "compute.functionmesh.io", Version: "v1alpha1", Resource: "functionmeshes"},
		"Deployment":   {Group: "apps", Version: "v1", Resource: "deployments"},
		"StatefulSet":  {Group: "apps", Version: "v1", Resource: "statefulsets"},
		"ScaledObject": {Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"},
	} {
		if withKEDA || kind != "ScaledObject" {
			kinds.AddSpecific(resource.GroupVersion().WithKind(kind), resource, resource, meta.RESTScopeNamespace)
		}
	}
	return kinds
}

func TestPolicyRightsFollowTheSpec(t *testing.T) {
	ofStatefulSet := func(least int32) func(*v1alpha1.AutoscalingPolicySpec) {
		return func(spec *v1alpha1.AutoscalingPolicySpec) {
			spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "resize"}
			spec.MinReplicas = &least
		}
	}
	kinds, withoutKEDA := kindsOf(true), kindsOf(false)
	for name, test := range map[string]struct {
		change func(*v1alpha1.AutoscalingPolicySpec)
		kinds  meta.RESTMapper
		want   []string
	}{
		"a Function": {
			func(*v1alpha1.AutoscalingPolicySpec) {}, kinds,
			[]string{"patch functions/scale", "create horizontalpodautoscalers"},
		},
		"a Function that is taken over": {
			func(spec *v1alpha1.AutoscalingPolicySpec) { spec.ConflictPolicy = v1alpha1.ConflictTakeOver }, kinds,
			[]string{
				"patch functions/scale", "warning: patch functions", "warning: patch scaledobjects",
				"create horizontalpodautoscalers",
			},
		},
		"a Function that is taken over without KEDA": {
			func(spec *v1alpha1.AutoscalingPolicySpec) { spec.ConflictPolicy = v1alpha1.ConflictTakeOver }, withoutKEDA,
			[]string{"patch functions/scale", "warning: patch functions", "create horizontalpodautoscalers"},
		},
		"a Deployment that is taken over": {
			func(spec *v1alpha1.AutoscalingPolicySpec) {
				spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "resize"}
				spec.ConflictPolicy = v1alpha1.ConflictTakeOver
			},
			kinds,
			[]string{"patch deployments/scale", "warning: patch scaledobjects", "create horizontalpodautoscalers"},
		},
		"a StatefulSet that an autoscaler scales": {
			ofStatefulSet(1), kinds, []string{"warning: patch statefulsets/scale", "create horizontalpodautoscalers"},
		},
		"a StatefulSet that scales to zero": {
			ofStatefulSet(0), kinds, []string{"patch statefulsets/scale", "create horizontalpodautoscalers"},
		},
		"a component of a FunctionMesh that is taken over": {
			func(spec *v1alpha1.AutoscalingPolicySpec) {
				spec.ScaleTargetRef.Kind, spec.ConflictPolicy = "FunctionMesh", v1alpha1.ConflictTakeOver
				spec.ScaleTargetRef.Component = v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "resize"}
			},
			withoutKEDA,
			[]string{"patch functionmeshes", "create horizontalpodautoscalers"},
		},
		"a component of a FunctionMesh": {
			func(spec *v1alpha1.AutoscalingPolicySpec) {
				spec.ScaleTargetRef.Kind, spec.Actuator = "FunctionMesh", v1alpha1.ActuatorDirect
				spec.ScaleTargetRef.Component = v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "resize"}
			},
			kinds,
			[]string{"patch functionmeshes"},
		},
		"a Deployment with KEDA and a Secret": {
			func(spec *v1alpha1.AutoscalingPolicySpec) {
				spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "resize"}
				spec.Actuator, spec.Pulsar = v1alpha1.ActuatorKEDA, &v1alpha1.PulsarConnection{AuthSecret: "pulsar"}
			},
			kinds,
			[]string{"patch deployments/scale", "create scaledobjects", "warning: get secrets"},
		},
		"a function of a worker": {
			func(spec *v1alpha1.AutoscalingPolicySpec) {
				spec.ScaleTargetRef, spec.Actuator = v1alpha1.ScaleTargetRef{}, v1alpha1.ActuatorDirect
			},
			kinds, nil,
		},
		"a function of a worker, which is shown no credentials of the adapter": {
			func(spec *v1alpha1.AutoscalingPolicySpec) {
				spec.ScaleTargetRef, spec.PulsarFunctionRef.Name = v1alpha1.ScaleTargetRef{}, "resize"
				spec.Actuator, spec.Pulsar = v1alpha1.ActuatorDirect, &v1alpha1.PulsarConnection{AuthSecret: "pulsar"}
			},
			kinds,
			[]string{"get secrets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := judgedPolicy()
			test.change(&p.Spec)
			var got []string
			for _, r := range policyRights(test.kinds, &p) {
				text := r.String()
				if r.missing != resultError {
					text = string(r.missing) + ": " + text
				}
				got = append(got, text)
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestAStatefulSetThatAutoScalesDirectlyNeedsTheRight(t *testing.T) {
	p := judgedPolicy()
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "resize"}
	p.Status.Actuator = &v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect}
	require.Equal(t, resultError, policyRights(kindsOf(true), &p)[0].missing)
}

// TestAFunctionWithMaxReplicasHasToBeTakenOver: the status in mode Recommend has no conflict that TakeOver resolves.
func TestAFunctionWithMaxReplicasHasToBeTakenOver(t *testing.T) {
	for name, test := range map[string]struct {
		mode v1alpha1.Mode
		spec map[string]any
		want string
	}{
		"in mode Auto":        {v1alpha1.ModeAuto, map[string]any{"maxReplicas": 9}, "error rights: "},
		"in mode Recommend":   {v1alpha1.ModeRecommend, map[string]any{"maxReplicas": 9}, "warning rights: "},
		"without maxReplicas": {v1alpha1.ModeAuto, map[string]any{}, "warning rights: "},
		"that is not read":    {v1alpha1.ModeAuto, nil, "warning rights: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			server.denied = []string{"patch functions"}
			server.verdict = func(p *v1alpha1.AutoscalingPolicy) {
				p.Status = judgedPolicy(setCondition("AutoscalerApplied", "True", "RecommendOnly", "")).Status
			}
			if test.spec != nil {
				server.objects["/apis/compute.functionmesh.io/v1alpha1/namespaces/media/functions/media-thumbs"] = map[string]any{
					"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function", "spec": test.spec,
				}
			}
			file := policyFile + "  conflictPolicy: TakeOver\n  mode: " + string(test.mode) + "\n"
			out, err := server.check(t, file, "-f", "-", "--yes")
			require.Equal(t, strings.HasPrefix(test.want, "error"), err != nil, "%v", err)
			require.Contains(t, flat(out), test.want+"ServiceAccount pulsar-autoscaler/adapter may not patch functions "+
				"(set rbac.takeOver of the chart, or apply deploy/rbac/takeover.yaml")
		})
	}
}
