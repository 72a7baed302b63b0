// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// namespace of all policies here.
const namespace = "default"

// people is an administrator's client, set by startControlPlane.
var people client.Client

var controlPlane = shared.New("a real control plane", startControlPlane, func(c *cluster.Cluster) error {
	c.Stop()
	return nil
})

func TestMain(m *testing.M) { shared.Main(m, controlPlane) }

func startControlPlane(ctx context.Context) (*cluster.Cluster, error) {
	crds, err := filepath.Glob(filepath.Join("..", "..", "deploy", "crd", "*.yaml"))
	if err != nil {
		return nil, err
	}
	control, err := cluster.Start(ctx, cluster.Config{CRDs: crds, Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	people = control.Client
	return control, nil
}

func onControlPlane(t *testing.T) *cluster.Cluster {
	t.Helper()
	return controlPlane.Need(t)
}

// fields are part of a manifest, as a user writes it: Go's types would hide what the API server sees.
type fields = map[string]any

// manifest is a policy with the given spec.
func manifest(name string, spec fields) *unstructured.Unstructured {
	return manifestOf(v1alpha1.KindAutoscalingPolicy, name, spec)
}

// manifestOf is an object of a kind with the given spec.
func manifestOf(kind, name string, spec fields) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields{"spec": runtime.DeepCopyJSON(spec)}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// create makes a policy that leaves with the test.
func create(t *testing.T, name string, spec fields) *unstructured.Unstructured {
	t.Helper()
	return createOf(t, v1alpha1.KindAutoscalingPolicy, name, spec)
}

func createOf(t *testing.T, kind, name string, spec fields) *unstructured.Unstructured {
	t.Helper()
	object := manifestOf(kind, name, spec)
	require.NoError(t, people.Create(t.Context(), object))
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(people.Delete(context.WithoutCancel(t.Context()), object)))
	})
	return object
}

// function is a target, and functionPolicy the shortest spec with some fields more.
func function() fields {
	return fields{"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function", "name": "resize"}
}

func functionPolicy(more fields) fields {
	return merge(fields{"scaleTargetRef": function(), "maxReplicas": int64(5)}, more)
}

func merge(base, more fields) fields {
	for key, value := range more {
		if value == nil {
			delete(base, key)
			continue
		}
		base[key] = value
	}
	return base
}

// attempt is a spec and what the API server says of it; empty is yes.
type attempt struct {
	spec fields
	want string
}

// try has the API server judge each policy, keeping none.
func try(t *testing.T, attempts map[string]attempt) {
	t.Helper()
	tryOf(t, v1alpha1.KindAutoscalingPolicy, attempts)
}

// tryOf does so for another kind, and strictly, as kubectl does.
func tryOf(t *testing.T, kind string, attempts map[string]attempt) {
	t.Helper()
	onControlPlane(t)
	for name, one := range attempts {
		t.Run(name, func(t *testing.T) {
			err := people.Create(t.Context(), manifestOf(kind, "attempt", one.spec), client.DryRunAll,
				client.FieldValidation(metav1.FieldValidationStrict))
			if one.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, one.want)
			require.NotContains(t, err.Error(), "evaluating rule", "a rule must not end in an error of CEL")
		})
	}
}
