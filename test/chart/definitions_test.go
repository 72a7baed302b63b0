// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
)

// operatorKinds are those of other projects that the chart creates.
func operatorKinds() []string {
	return []string{
		"cert-manager.io/v1/Certificate", "cert-manager.io/v1/Issuer", "keda.sh/v1alpha1/ClusterTriggerAuthentication",
		"monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/PrometheusRule",
		"monitoring.coreos.com/v1/ServiceMonitor",
	}
}

// definitions are the files of the CustomResourceDefinitions of those kinds.
func definitions(ctx context.Context) (files []string, err error) {
	keda, err := binaries.BuildKEDA(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	for _, file := range keda.CRDs {
		if filepath.Base(file) == "keda.sh_clustertriggerauthentications.yaml" {
			files = append(files, file)
		}
	}
	for module, names := range map[string][]string{
		"github.com/cert-manager/cert-manager": {
			"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml",
		},
		"github.com/prometheus-operator/prometheus-operator": {
			"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		},
	} {
		sources, err := download(ctx, module)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			files = append(files, filepath.Join(sources, filepath.FromSlash(name)))
		}
	}
	return files, nil
}

// download returns the directory of a module that ./operators pins.
func download(ctx context.Context, module string) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir = "operators"
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := command.Output()
	var downloaded struct{ Dir, Error string }
	if errJSON := json.Unmarshal(out, &downloaded); err != nil || errJSON != nil || downloaded.Error != "" {
		return "", fmt.Errorf("downloading %s: %w: %s", module, errors.Join(err, errJSON), downloaded.Error)
	}
	return downloaded.Dir, nil
}

// TestUnknownFieldsOfOtherProjectsAreDenied, so that a misspelled one in the chart fails.
func TestUnknownFieldsOfOtherProjectsAreDenied(t *testing.T) {
	if testing.Short() {
		t.Skip("needs helm and a real control plane")
	}
	people := administrator(t)
	require.NoError(t, client.IgnoreAlreadyExists(people.Create(t.Context(), namespaceOf(namespace))))
	rendered := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"certmanager", "full", "scaler"} {
		for _, object := range render(t, valueFiles(t)[name]) {
			rendered[object.GetAPIVersion()+"/"+object.GetKind()] = object
		}
	}
	for _, kind := range operatorKinds() {
		t.Run(kind, func(t *testing.T) {
			object := rendered[kind]
			require.NotNil(t, object, "the values do not render it")
			require.NoError(t, apply(t, people, object))
			require.NoError(t, unstructured.SetNestedField(object.Object, "x", "spec", "misspelled"))
			require.ErrorContains(t, apply(t, people, object), "spec.misspelled: field not declared in schema")
		})
	}
}

// apply has the API server check an object strictly.
func apply(t *testing.T, people client.Client, object *unstructured.Unstructured) error {
	t.Helper()
	return people.Patch(t.Context(), object.DeepCopy(),
		client.Apply, //nolint:staticcheck // unstructured objects of any kind
		client.DryRunAll, client.ForceOwnership, client.FieldOwner("chart"),
		client.FieldValidation(metav1.FieldValidationStrict))
}
