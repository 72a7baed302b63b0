// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// kedaSchema is the schema of ScaledObjects of the KEDA version in go.mod.
func kedaSchema(t *testing.T) *apiextensions.JSONSchemaProps {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/kedacore/keda/v2").Output()
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "bases",
		"keda.sh_scaledobjects.yaml"))
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(content, &crd))
	require.Len(t, crd.Spec.Versions, 1)
	var schema apiextensions.JSONSchemaProps
	require.NoError(t,
		apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil))
	return &schema
}

// TestKEDAKnowsEveryFieldOfOurScaledObject: an unknown field fails a server-side apply, and an invalid one every write.
func TestKEDAKnowsEveryFieldOfOurScaledObject(t *testing.T) {
	schema := kedaSchema(t)
	structural, err := structuralschema.NewStructural(schema)
	require.NoError(t, err)
	validator, _, err := validation.NewSchemaValidator(schema)
	require.NoError(t, err)
	problems := func(fields map[string]any) []string {
		var all []string
		for _, problem := range validation.ValidateCustomResource(nil, fields, validator) {
			all = append(all, problem.Error())
		}
		unknown := pruning.PruneWithOptions(fields, structural, true,
			structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		return append(all, unknown...)
	}
	for name, change := range map[string]func(*plan.Observed, *plan.Scaler){
		"as most are":      func(*plan.Observed, *plan.Scaler) {},
		"down to zero":     func(w *plan.Observed, _ *plan.Scaler) { w.Policy.Spec.MinReplicas = new(int32) },
		"with a long name": func(w *plan.Observed, _ *plan.Scaler) { w.Policy.Name = strings.Repeat("resize.", 30) + "x" },
		"a day of cooldown": func(w *plan.Observed, _ *plan.Scaler) {
			w.Policy.Spec.MinReplicas = new(int32)
			w.Policy.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{CooldownPeriodSeconds: new(
				int32(86400))}}
		},
		"with TLS and a name": func(_ *plan.Observed, s *plan.Scaler) { s.TLS, s.Authentication = true, "scaler-ca" },
	} {
		t.Run(name, func(t *testing.T) {
			w, scaler := world(), plan.Scaler{Address: "scaler.pulsar-autoscaler.svc:9090"}
			change(&w, &scaler)
			require.Empty(t, problems(fields(t, plan.ScaledObject(w.Policy, w.Target, scaler))))
		})
	}
	wrong := fields(t, plan.ScaledObject(world().Policy, world().Target, plan.Scaler{}))
	spec, _ := wrong["spec"].(map[string]any)
	spec["maxReplicas"], spec["minReplicaCount"] = int64(3), "one"
	require.Len(t, problems(wrong), 2, "such is found")
}

// fields are what is applied.
func fields(t testing.TB, configuration *plan.ScaledObjectConfiguration) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	require.NoError(t, err)
	return fields
}
