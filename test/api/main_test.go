// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// namespace of all policies here.
const namespace = "default"

// The control plane is set by the first test that calls onControlPlane.
var (
	control *cluster.Cluster
	people  client.Client // an administrator's
)

// lifetime is that of the test process, which the control plane shares.
var lifetime context.Context //nolint:containedctx // TestMain has no other way to hand it to the tests

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lifetime = ctx
	defer func() {
		if control != nil {
			control.Stop()
		}
	}()
	return m.Run()
}

var startControlPlane = sync.OnceValue(func() error {
	crds, err := filepath.Glob(filepath.Join("..", "..", "deploy", "crd", "*.yaml"))
	if err != nil {
		return err
	}
	if control, err = cluster.Start(lifetime, cluster.Config{CRDs: crds, Progress: os.Stderr}); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	people, err = client.New(control.RESTConfig(), client.Options{Scheme: scheme})
	return err
})

func onControlPlane(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	require.NoError(t, startControlPlane(), "starting the control plane")
}

// fields are part of a manifest, as a user writes it: Go's types would hide what the API server sees.
type fields = map[string]any

// manifest is a policy with the given spec.
func manifest(name string, spec fields) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields{"spec": runtime.DeepCopyJSON(spec)}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.KindAutoscalingPolicy))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// create makes a policy that leaves with the test.
func create(t *testing.T, name string, spec fields) *unstructured.Unstructured {
	t.Helper()
	object := manifest(name, spec)
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

// try has the API server judge each, keeping none.
func try(t *testing.T, attempts map[string]attempt) {
	t.Helper()
	onControlPlane(t)
	for name, one := range attempts {
		t.Run(name, func(t *testing.T) {
			err := people.Create(t.Context(), manifest("attempt", one.spec), client.DryRunAll)
			if one.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, one.want)
		})
	}
}
