// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// secondStage has its own control plane, where tests change APIServices. Its adapter serves no external metrics, and
// its HorizontalPodAutoscalers could scale to zero, as from Kubernetes 1.37.
func secondStage(t *testing.T) *stage.Stage {
	t.Helper()
	onStage(t)
	s, err := stage.Open(context.WithoutCancel(t.Context()), stage.Config{ // t.Context ends before the clean-up
		HPASyncPeriod: hpaSync, Beside: scene, FeatureGates: "HPAScaleToZero=true",
		AdapterFlags: adapterFlags(),
	})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// pointAPIs sets the Service that serves custom metrics.
func pointAPIs(t *testing.T, s *stage.Stage, namespace, name string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"service":{"namespace":%q,"name":%q}}}`, namespace, name))
	for _, version := range cluster.CustomMetrics() {
		service := &unstructured.Unstructured{}
		service.SetGroupVersionKind(schema.GroupVersionKind{
			Group: "apiregistration.k8s.io", Version: "v1",
			Kind: "APIService",
		})
		service.SetName(version.Version + "." + version.Group)
		require.NoError(t, s.Client.Patch(t.Context(), service, patch))
	}
}

// owned is a Function with a policy on the second stage.
type owned struct {
	t     *testing.T
	stage *stage.Stage
	*stage.Function
}

// eventually waits until the policy's status and its autoscaler, nil for none, are as expected.
func (o owned) eventually(what string,
	holds func(v1alpha1.AutoscalingPolicyStatus, *autoscalingv2.HorizontalPodAutoscaler, int64) bool,
) {
	o.t.Helper()
	o.Await(o.t, what, func(ctx context.Context) (bool, string, error) {
		p, err := o.Policy(ctx)
		if err != nil {
			return false, "", err
		}
		hpa, err := o.Autoscaler(ctx)
		if err != nil {
			return false, "", err
		}
		replicas, err := o.Replicas(ctx)
		return err == nil && holds(p.Status, hpa, replicas.Spec), fmt.Sprintf("%+v, autoscaler %t", replicas, hpa != nil), err
	})
}

// wantAtLeast changes minReplicas of the policy, and so the decision.
func (o owned) wantAtLeast(replicas int) {
	o.t.Helper()
	p := &v1alpha1.AutoscalingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: o.Name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"minReplicas":%d}}`, replicas))
	require.NoError(o.t, o.stage.Client.Patch(o.t.Context(), p, patch))
}

// metricsOf are the adapter's own metrics.
func metricsOf(t *testing.T, s *stage.Stage) string {
	t.Helper()
	text, err := s.Ask(t.Context(), s.Adapter, "/metrics")
	require.NoError(t, err)
	return string(text)
}

func TestAutoFollowsWhoServesTheMetricsAPI(t *testing.T) {
	t.Parallel()
	const name = "owned"
	s := secondStage(t)
	f := s.TestFunction(t, stage.FunctionConfig{Name: name, ServiceTime: time.Millisecond, Replicas: 2})
	o := owned{t: t, stage: s, Function: f}
	p := newPolicy(name)
	*p.Spec.MinReplicas = 2
	require.NoError(t, s.Client.Create(t.Context(), p))
	hpaChosen := func(status v1alpha1.AutoscalingPolicyStatus, hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
		if status.Actuator == nil || status.Actuator.Type != v1alpha1.ActuatorHPA || hpa == nil {
			return false
		}
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.ScalingActive {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	}
	o.eventually("an autoscaler that scales",
		func(status v1alpha1.AutoscalingPolicyStatus, hpa *autoscalingv2.HorizontalPodAutoscaler, replicas int64) bool {
			return hpaChosen(status, hpa) && replicas == 2
		})

	pointAPIs(t, s, "monitoring", "prometheus-adapter")
	o.eventually("Direct, which names the holder",
		func(status v1alpha1.AutoscalingPolicyStatus, hpa *autoscalingv2.HorizontalPodAutoscaler, _ int64) bool {
			return hpa == nil && status.Actuator != nil && status.Actuator.Type == v1alpha1.ActuatorDirect &&
				strings.Contains(status.Actuator.Reason, "custom.metrics.k8s.io is served by Service monitoring/prometheus-adapter")
		})
	o.wantAtLeast(3)
	o.eventually("3 replicas without an autoscaler",
		func(_ v1alpha1.AutoscalingPolicyStatus, hpa *autoscalingv2.HorizontalPodAutoscaler, replicas int64) bool {
			return hpa == nil && replicas == 3
		})

	pointAPIs(t, s, "pulsar-autoscaler", "adapter")
	o.eventually("an autoscaler again",
		func(status v1alpha1.AutoscalingPolicyStatus, hpa *autoscalingv2.HorizontalPodAutoscaler, replicas int64) bool {
			return hpaChosen(status, hpa) && replicas == 3
		})
	o.wantAtLeast(4)
	desired := func() []int { return s.Mesh.Desired(stage.Namespace, o.Name, time.Time{}) }
	o.eventually("4 replicas, which the operator knows too",
		func(_ v1alpha1.AutoscalingPolicyStatus, _ *autoscalingv2.HorizontalPodAutoscaler, replicas int64) bool {
			return replicas == 4 && slices.Contains(desired(), 4)
		})

	require.Equal(t, []int{2, 3, 4}, desired(), "no jump")
	metrics := metricsOf(t, s)
	require.Contains(t, metrics, "pulsar_autoscaler_policy_scales_total{result=\"scaled\"} 1\n",
		"the adapter wrote the 3 alone")
	require.NotContains(t, metrics, "pulsar_autoscaler_cluster_capability{capability=\"external_metrics\"}")

	api, err := discovery.NewDiscoveryClientForConfig(s.Cluster.RESTConfig())
	require.NoError(t, err)
	groups, err := api.ServerGroups()
	require.NoError(t, err)
	var names []string
	for _, group := range groups.Groups {
		names = append(names, group.Name)
	}
	require.Contains(t, names, "custom.metrics.k8s.io")
	require.NotContains(t, names, "external.metrics.k8s.io", "not without --external-metrics")
	_, err = s.Ask(t.Context(), s.Adapter, "/apis/external.metrics.k8s.io/v1beta1")
	require.ErrorContains(t, err, "could not find the requested resource")
	anOperatorThatIsStoppedIsTold(t, o)
	aPushWakes(t, s)
}

// anOperatorThatIsStoppedIsTold stops Function Mesh's operator of the second stage: on the other it runs all Functions.
func anOperatorThatIsStoppedIsTold(t *testing.T, o owned) {
	t.Helper()
	o.stage.Mesh.Pause()
	t.Cleanup(o.stage.Mesh.Resume)
	o.wantAtLeast(5)
	said := o.AwaitConditions(t, "Ready=False/NotFollowed")
	require.Contains(t, said, "Function Mesh does not act on the change: is its operator running?")
	o.stage.Mesh.Resume()
	o.AwaitConditions(t, "Ready=True/Scaling")
	o.AwaitReplicas(t, 5, 5)
}

func TestCapabilitiesOfTheRealAPIServer(t *testing.T) {
	t.Parallel()
	onStage(t)
	wanted := []string{
		`pulsar_autoscaler_cluster_capability{capability="custom_metrics"} 1`,
		`pulsar_autoscaler_cluster_capability{capability="external_metrics"} 1`,
		// the stage has KEDA's kinds
		`pulsar_autoscaler_cluster_capability{capability="tolerance"} 1`,
		`pulsar_autoscaler_cluster_capability{capability="keda"} 1`,
	}
	scene.Await(t, "the cluster to be probed", func(ctx context.Context) (bool, string, error) {
		metrics, err := scene.Ask(ctx, scene.Adapter, "/metrics")
		if err != nil {
			return false, "", err
		}
		found := strings.Split(string(metrics), "\n")
		for _, line := range wanted {
			if !slices.Contains(found, line) {
				return false, "no line " + line, nil
			}
		}
		return true, "", nil
	})
	var left autoscalingv2.HorizontalPodAutoscalerList
	require.NoError(t, scene.Client.List(t.Context(), &left, client.InNamespace("pulsar-autoscaler")))
	require.Empty(t, left.Items, "a dry run leaves nothing")
}

func TestScalingAPlainHPAFollowsAnExternalMetric(t *testing.T) {
	t.Parallel()
	const name, perReplica = "external", 200
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond})
	hpa := plainHPA(name, perReplica)
	object := hpa.Spec.Metrics[0].Object
	hpa.Spec.Metrics[0] = autoscalingv2.MetricSpec{
		Type: autoscalingv2.ExternalMetricSourceType,
		External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: object.Metric.Name, Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"kind": mesh.KindFunction, "name": name},
			}},
			Target: object.Target,
		},
	}
	require.NoError(t, scene.Client.Create(t.Context(), hpa))
	t.Cleanup(func() { require.NoError(t, scene.Client.Delete(context.WithoutCancel(t.Context()), hpa)) })
	publish(t, f, load.Constant(250)) // one replica processes 100/s
	f.AwaitReplicas(t, 3, 5)
}
