// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	ownsReplicas  = `{"f:spec":{"f:replicas":{}}}`
	ownsMore      = `{"f:metadata":{"f:labels":{".":{}}},"f:spec":{"f:replicas":{},"f:template":{}}}`
	ownsTemplate  = `{"f:spec":{"f:template":{}}}`
	ownsFunctions = `{"f:spec":{"f:functions":{}}}`
)

// entry is an entry of managed fields that was written a number of seconds after noon.
func entry(manager string, operation metav1.ManagedFieldsOperationType, seconds int, fields string,
) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(noon().Add(time.Duration(seconds) * time.Second))
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Time: &at, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// scaled is an entry of the scale subresource, which has no time.
func scaled(manager string) metav1.ManagedFieldsEntry {
	e := entry(manager, metav1.ManagedFieldsOperationUpdate, 0, ownsReplicas)
	e.Time, e.Subresource = nil, "scale"
	return e
}

func TestTheLastWriterOwnsTheField(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	tests := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		path    string
		want    string
	}{
		"kubectl scale": {
			[]metav1.ManagedFieldsEntry{entry("kubectl-client-side-apply", update, 0, ownsTemplate), scaled("kubectl")},
			"spec.replicas", "kubectl scale (manager kubectl, Update, subresource scale)",
		},
		"kubectl edit": {
			[]metav1.ManagedFieldsEntry{entry("kubectl-edit", update, 9, ownsReplicas)},
			"spec.replicas", "kubectl edit (manager kubectl-edit, Update) at 2026-11-21T12:00:09Z",
		},
		"kubectl patch of the scale subresource": {
			[]metav1.ManagedFieldsEntry{scaled("kubectl-patch")},
			"spec.replicas", "kubectl patch (manager kubectl-patch, Update, subresource scale)",
		},
		"kubectl apply": {
			[]metav1.ManagedFieldsEntry{entry("kubectl-client-side-apply", update, 0, ownsMore)},
			"spec.replicas", "kubectl apply (manager kubectl-client-side-apply, Update) at 2026-11-21T12:00:00Z",
		},
		"kubectl apply on the server": {
			[]metav1.ManagedFieldsEntry{entry("kubectl", apply, 0, ownsMore)},
			"spec.replicas", "kubectl apply --server-side (manager kubectl, Apply) at 2026-11-21T12:00:00Z",
		},
		"another version of kubectl": {
			[]metav1.ManagedFieldsEntry{entry("kubectl", update, 0, ownsMore)},
			"spec.replicas", "kubectl (Update) at 2026-11-21T12:00:00Z",
		},
		"the HPA controller": {
			[]metav1.ManagedFieldsEntry{scaled("kube-controller-manager")},
			"spec.replicas",
			"a HorizontalPodAutoscaler (manager kube-controller-manager, Update, subresource scale)",
		},
		"KEDA": {
			[]metav1.ManagedFieldsEntry{scaled("keda")},
			"spec.replicas",
			"KEDA (manager keda, Update, subresource scale)",
		},
		"Argo CD": {
			[]metav1.ManagedFieldsEntry{entry("argocd-controller", apply, 0, ownsMore)},
			"spec.replicas",
			"Argo CD (manager argocd-controller, Apply) at 2026-11-21T12:00:00Z",
		},
		"Argo CD without server-side apply": {
			[]metav1.ManagedFieldsEntry{entry("argocd-application-controller", update, 0, ownsMore)},
			"spec.replicas",
			"Argo CD (manager argocd-application-controller, Update) at 2026-11-21T12:00:00Z",
		},
		"Flux": {
			[]metav1.ManagedFieldsEntry{entry("kustomize-controller", apply, 0, ownsMore)},
			"spec.replicas",
			"Flux (manager kustomize-controller, Apply) at 2026-11-21T12:00:00Z",
		},
		"a HelmRelease of Flux": {
			[]metav1.ManagedFieldsEntry{entry("helm-controller", update, 0, ownsMore)},
			"spec.replicas",
			"Flux (manager helm-controller, Update) at 2026-11-21T12:00:00Z",
		},
		"Helm": {
			[]metav1.ManagedFieldsEntry{entry("helm", update, 0, ownsMore)},
			"spec.replicas",
			"Helm (manager helm, Update) at 2026-11-21T12:00:00Z",
		},
		"a program of the user": {
			[]metav1.ManagedFieldsEntry{entry("night-shift", update, 0, ownsMore)},
			"spec.replicas",
			"night-shift (Update) at 2026-11-21T12:00:00Z",
		},
		"the newer of two that apply one number": {
			[]metav1.ManagedFieldsEntry{
				entry("a", apply, 7, ownsMore), entry("b", apply, 9, ownsMore), entry("c", apply, 8, ownsMore),
			},
			"spec.replicas", "b (Apply) at 2026-11-21T12:00:09Z",
		},
		"the writer before an apply of the same number": {
			[]metav1.ManagedFieldsEntry{entry("argocd-controller", apply, 60, ownsMore), scaled("kubectl")},
			"spec.replicas", "kubectl scale (manager kubectl, Update, subresource scale)",
		},
		"the entry without a time of two that update": {
			[]metav1.ManagedFieldsEntry{scaled("kubectl"), entry("kubectl-edit", update, 60, ownsReplicas)},
			"spec.replicas", "kubectl scale (manager kubectl, Update, subresource scale)",
		},
		"the list of a FunctionMesh": {
			[]metav1.ManagedFieldsEntry{
				entry("manager", update, 9, `{"f:status":{}}`), entry("kubectl-edit", update, 0, ownsFunctions),
			},
			"spec.functions", "kubectl edit (manager kubectl-edit, Update) at 2026-11-21T12:00:00Z",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			writer, err := plan.LastWriter(test.entries, strings.Split(test.path, "."))
			require.NoError(t, err)
			require.Equal(t, test.want, writer.String())
		})
	}
}

func TestAToolThatAppliesManifestsIsToBeStopped(t *testing.T) {
	for manager, applies := range map[string]bool{
		"kubectl-client-side-apply": true, "argocd-controller": true, "argocd-application-controller": true,
		"kustomize-controller": true, "helm-controller": true, "helm": true, "keda": false, "kubectl-edit": false,
	} {
		writer := plan.Writer{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}
		scaled := plan.ManualScale{Field: "spec.replicas", To: 1, WriterLookup: plan.WriterLookup{Writer: writer}}
		require.Equal(t, applies, strings.Contains(scaled.String(), "let it ignore spec.replicas"), manager)
	}
}

func TestAnUnknownWriterIsAnError(t *testing.T) {
	const update = metav1.ManagedFieldsOperationUpdate
	tests := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"no managed fields": {nil, "no field manager owns the field spec.replicas"},
		"an entry without fields": {
			[]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: update}},
			"no field manager owns the field spec.replicas",
		},
		"a manager without a name": {
			[]metav1.ManagedFieldsEntry{entry("", update, 0, ownsReplicas)},
			"no field manager owns the field spec.replicas",
		},
		"fields that are none": {
			[]metav1.ManagedFieldsEntry{entry("kubectl", update, 0, `{"f:spec":null}`)},
			"no field manager owns the field spec.replicas",
		},
		"others that own the rest": {
			[]metav1.ManagedFieldsEntry{entry("kubectl", update, 0, ownsTemplate)},
			"no field manager owns the field spec.replicas",
		},
		"text that is no set of fields": {
			[]metav1.ManagedFieldsEntry{entry("kubectl", update, 0, `{"f:spec":[]}`)},
			"decoding the managed fields of kubectl: ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			writer, err := plan.LastWriter(test.entries, []string{"spec", "replicas"})
			require.ErrorContains(t, err, test.want)
			require.Equal(t, plan.Writer{}, writer)
		})
	}
}

func TestAManagersNameIsBounded(t *testing.T) {
	writer, err := plan.LastWriter([]metav1.ManagedFieldsEntry{scaled(strings.Repeat("é", 5000))},
		[]string{"spec", "replicas"})
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("é", 64), writer.Manager)
}

// FuzzLastWriter decodes any managed fields: it returns one of their managers, or an error.
func FuzzLastWriter(f *testing.F) {
	for _, entries := range [][]metav1.ManagedFieldsEntry{
		{scaled("kubectl"), entry("argocd-controller", metav1.ManagedFieldsOperationApply, 3, ownsMore)},
		{entry("kubectl-edit", metav1.ManagedFieldsOperationUpdate, 3, ownsFunctions)},
		{},
	} {
		text, err := json.Marshal(entries)
		require.NoError(f, err)
		f.Add(text, "spec.replicas")
		f.Add(text, "spec.functions")
	}
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		var entries []metav1.ManagedFieldsEntry
		if json.Unmarshal(text, &entries) != nil {
			t.Skip()
		}
		writer, err := plan.LastWriter(entries, strings.Split(path, "."))
		if err != nil {
			require.Equal(t, plan.Writer{}, writer)
			return
		}
		var managers []string
		for _, e := range entries {
			managers = append(managers, plan.Shorten(e.Manager, 128))
		}
		require.Contains(t, managers, writer.Manager)
		require.NotEmpty(t, writer.String())
	})
}
