// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// reviewed is a cluster with a user who may create everything but the denied resources.
func reviewed(t *testing.T, denied ...string) client.Client {
	t.Helper()
	cluster, isWatched := clusterWith(t).(client.WithWatch)
	require.True(t, isWatched)
	return interceptor.NewClient(cluster, interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
			review, isReview := object.(*authorizationv1.SelfSubjectAccessReview)
			if !isReview {
				return to.Create(ctx, object, options...)
			}
			asked := review.Spec.ResourceAttributes
			review.Status.Allowed = asked.Verb == "create" && !slices.Contains(denied, asked.Resource)
			return nil
		},
	})
}

// ready is a run that nothing keeps from beginning, with contenders that need Function Mesh, KEDA and policies.
func ready(t *testing.T) *runner {
	t.Helper()
	broker, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	url, _ := adminService(t, http.StatusNotFound)
	s := sampleScenario(t)
	s.Pulsar.ServiceURL = "pulsar://" + broker.Addr().String()
	s.Contenders = slices.DeleteFunc(s.Contenders, func(c scenario.Contender) bool { return c.CPU != nil })
	r := newRunner(Config{Scenario: s, Kube: reviewed(t)})
	r.admin = adminAt(t, url)
	return r
}

func TestPreflightFindsWhatWouldEndTheRun(t *testing.T) {
	require.NoError(t, ready(t).preflight(t.Context()))
	for name, test := range map[string]struct {
		change func(r *runner)
		want   []string
	}{
		"rights that the user lacks": {
			func(r *runner) { r.Kube = reviewed(t, "namespaces", "scaledobjects") },
			[]string{"you may not create namespaces", "you may not create scaledobjects.keda.sh in namespaces that"},
		},
		"a kind that the cluster lacks": {
			func(r *runner) {
				r.Scenario.Contenders = append(r.Scenario.Contenders, scenario.Contender{Name: "cpu", CPU: &scenario.CPU{}})
			},
			[]string{"the cluster has no PodMetrics of metrics.k8s.io/v1beta1: install metrics-server"},
		},
		"credentials that Pulsar refuses": {
			func(r *runner) {
				url, _ := adminService(t, http.StatusUnauthorized)
				r.admin = adminAt(t, url)
			},
			[]string{"pulsar answered 401 Unauthorized", "--pulsar-token-file"},
		},
		"a broker that is elsewhere, and a right": {
			func(r *runner) {
				r.Scenario.Pulsar.ServiceURL, r.Kube = "pulsar://127.0.0.1:1", reviewed(t, "functions")
			},
			[]string{"check pulsar.serviceURL", "you may not create functions.compute.functionmesh.io"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := ready(t)
			test.change(r)
			err := r.preflight(t.Context())
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
