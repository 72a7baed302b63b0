// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/kube"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/poller"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/series"
)

// discovery is the discovery of an API server with our kinds, by path.
func discovery() map[string]any {
	answers := map[string]any{
		"/api": &metav1.APIVersions{Versions: []string{"v1"}},
		"/api/v1": &metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}},
		}},
	}
	groups := &metav1.APIGroupList{}
	for version, kinds := range map[metav1.GroupVersion]map[string]string{
		{Group: "pulsar-autoscaler.io", Version: "v1alpha1"}: {
			"AutoscalingPolicy": "autoscalingpolicies", "AutoscalingPolicySet": "autoscalingpolicysets",
		},
		{Group: "autoscaling", Version: "v2"}:            {"HorizontalPodAutoscaler": "horizontalpodautoscalers"},
		{Group: "coordination.k8s.io", Version: "v1"}:    {"Lease": "leases"},
		{Group: "apiregistration.k8s.io", Version: "v1"}: {"APIService": "apiservices"},
	} {
		listed := metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version}
		groups.Groups = append(groups.Groups, metav1.APIGroup{
			Name: version.Group, Versions: []metav1.GroupVersionForDiscovery{listed}, PreferredVersion: listed,
		})
		resources := &metav1.APIResourceList{GroupVersion: version.String()}
		for kind, name := range kinds {
			resources.APIResources = append(resources.APIResources, metav1.APIResource{
				Name: name, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"},
			})
		}
		answers["/apis/"+version.String()] = resources
	}
	answers["/apis"] = groups
	return answers
}

// electing is a manager that is elected when the channel is closed.
type electing struct {
	ctrl.Manager

	elected chan struct{}
}

func (m electing) Elected() <-chan struct{} { return m.elected }

// accepting is an API server that accepts everything.
type accepting struct{}

func (accepting) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestTheReplicaThatDecidesIsTheLeader(t *testing.T) {
	synctest.Test(t, theReplicaThatDecidesIsTheLeader)
}

func theReplicaThatDecidesIsTheLeader(t *testing.T) {
	manager := electing{elected: make(chan struct{})}
	lease := types.NamespacedName{Namespace: "system", Name: "decider"}
	a := &adapter{manager: manager, fence: kube.NewFence(lease, time.Minute)}
	registry := prometheus.NewPedanticRegistry()
	a.registerMetrics(registry)
	leads := func(want string) {
		t.Helper()
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pulsar_autoscaler_leader 1 on the replica that decides, which holds the Lease; 0 on the others.
# TYPE pulsar_autoscaler_leader gauge
pulsar_autoscaler_leader `+want+"\n"), "pulsar_autoscaler_leader"))
	}
	leads("0")
	close(manager.elected)
	leads("1")

	renewal, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		"https://kubernetes/apis/coordination.k8s.io/v1/namespaces/system/leases/decider", http.NoBody)
	require.NoError(t, err)
	answer, err := a.fence.Transport(accepting{}).RoundTrip(renewal)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	leads("1")
	time.Sleep(time.Minute)
	leads("0")
	err = fencedWorker{&poller.LateWorker{}, a.fence}.SetParallelism(t.Context(), function.Component{}, 3)
	require.ErrorIs(t, err, kube.ErrLeaseExpired)
}

func TestThePageHasEverySeries(t *testing.T) {
	o, err := ParseOptions([]string{
		"--kubeconfig=" + fixture.Kubeconfig(t, fakeAPIServer(t).URL), "--lease-namespace=pulsar-autoscaler",
		"--policy-metrics=Full", "--external-metrics",
	}, nil)
	require.NoError(t, err)
	o.Serving.SecureServing.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = o.Serving.SecureServing.Listener.Close() })
	recorder := series.NewRecorder()
	_, err = newAdapter(t.Context(), o, recorder)
	require.NoError(t, err)
	recorder.ComparePage(t, "adapter", *update, metrics.Table()...)
}
