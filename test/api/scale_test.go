// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const policiesPath = "/apis/pulsar-autoscaler.io/v1alpha1/namespaces/" + namespace + "/autoscalingpolicies/"

// raw asks the API server for paths.
func raw(t *testing.T) rest.Interface {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(onControlPlane(t).RESTConfig())
	require.NoError(t, err)
	return clientset.RESTClient()
}

func scaleOf(t *testing.T, request *rest.Request) autoscalingv1.Scale {
	t.Helper()
	body, err := request.Do(t.Context()).Raw()
	require.NoError(t, err, "%s", body)
	var scale autoscalingv1.Scale
	require.NoError(t, json.Unmarshal(body, &scale))
	require.Equal(t, "autoscaling/v1", scale.APIVersion)
	require.Equal(t, "Scale", scale.Kind)
	return scale
}

// setStatus writes a status as the adapter would.
func setStatus(t *testing.T, object client.Object, change func(*v1alpha1.AutoscalingPolicyStatus)) {
	t.Helper()
	p := &v1alpha1.AutoscalingPolicy{}
	require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(object), p))
	before := p.DeepCopy()
	change(&p.Status)
	require.NoError(t, people.Status().Patch(t.Context(), p, client.MergeFrom(before)))
}

// TestScaleSubresourceOfAPolicyIsThatOfItsTarget: the HorizontalPodAutoscaler of a target without one reads the
// replicas and the selector here, and writes the replicas, which are the only field that changes.
func TestScaleSubresourceOfAPolicyIsThatOfItsTarget(t *testing.T) {
	onControlPlane(t)
	object := create(t, "handed-on", functionPolicy(fields{"scaleTargetRef": meshTarget(nil), "replicas": int64(2)}))
	setStatus(t, object, func(s *v1alpha1.AutoscalingPolicyStatus) {
		s.CurrentReplicas, s.Selector = new(int32(3)), "component=function,name=resize"
	})
	api, path := raw(t), policiesPath+object.GetName()+"/scale"

	got := scaleOf(t, api.Get().AbsPath(path))
	require.Equal(t, int32(2), got.Spec.Replicas, "spec.replicas")
	require.Equal(t, int32(3), got.Status.Replicas, "status.currentReplicas")
	require.Equal(t, "component=function,name=resize", got.Status.Selector)

	got.Spec.Replicas, got.Status.Replicas, got.Status.Selector = 4, 99, "a=b"
	body, err := json.Marshal(got)
	require.NoError(t, err)
	got = scaleOf(t, api.Put().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body))
	require.Equal(t, int32(4), got.Spec.Replicas)
	require.Equal(t, int32(3), got.Status.Replicas, "the status is not the HorizontalPodAutoscaler's to write")
	require.Equal(t, "component=function,name=resize", got.Status.Selector)

	got = scaleOf(t, api.Patch(types.MergePatchType).AbsPath(path).Body([]byte(`{"spec":{"replicas":0}}`)))
	require.Zero(t, got.Spec.Replicas)

	require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	require.NoError(t, err)
	require.True(t, found, "0 is a number")
	require.Zero(t, replicas)

	for body, want := range map[string]string{
		`{"spec":{"replicas":-1}}`:    "spec.replicas: Invalid value: -1",
		`{"spec":{"replicas":10001}}`: "should be less than or equal to 10000",
	} {
		answer, err := api.Patch(types.MergePatchType).AbsPath(path).Body([]byte(body)).Do(t.Context()).Raw()
		require.Error(t, err, body)
		require.Contains(t, string(answer)+err.Error(), want)
	}
}

// TestScaleSubresourceOfAPolicyWithoutReplicasSaysSo: which is why the controller writes them before the
// HorizontalPodAutoscaler.
func TestScaleSubresourceOfAPolicyWithoutReplicasSaysSo(t *testing.T) {
	onControlPlane(t)
	object := create(t, "unset", functionPolicy(nil))
	err := raw(t).Get().AbsPath(policiesPath + object.GetName() + "/scale").Do(t.Context()).Error()
	require.True(t, apierrors.IsInternalError(err), "%v", err)
	require.ErrorContains(t, err, `the spec replicas field ".spec.replicas" does not exist`)
}
