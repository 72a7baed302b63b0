// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// kept is an object of the API server.
func kept(t *testing.T, text string) client.Object {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	return object
}

const (
	scaledDeployment = "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: media, name: so}, " +
		"spec: {scaleTargetRef: {name: d}}}"
	scaledFunction = `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: media, name: so}, spec: {minReplicaCount: 2, maxReplicaCount: 7,
  scaleTargetRef: {apiVersion: compute.functionmesh.io/v1alpha1, kind: Function, name: resize}}}`
	keptFunction = "{apiVersion: compute.functionmesh.io/v1alpha1, kind: Function, metadata: {namespace: media, name: " +
		"resize}, spec: {replicas: 5}}"
)

// keptAutoscaler is KEDA's HorizontalPodAutoscaler, with a status.
func keptAutoscaler(t *testing.T, status string) client.Object {
	t.Helper()
	return kept(
		t,
		`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: media, name: keda-hpa-so,
  ownerReferences: [
  {apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: so, uid: u, controller: true}]},
  spec: {maxReplicas: 100}, status: `+status+"}",
	)
}

func TestReplicasOfAScaledObject(t *testing.T) {
	const synced = "conditions: [{type: AbleToScale, status: 'True', reason: ReadyForNewScale}]"
	tests := map[string]struct {
		objects []client.Object
		want    int32
		wrong   error
	}{
		"KEDA's defaults, with the status of the autoscaler": {
			objects: []client.Object{
				kept(t, scaledDeployment),
				keptAutoscaler(t, "{currentReplicas: 3, desiredReplicas: 3, "+synced+"}"),
			},
			want: 3,
		},
		"a cached target takes precedence over the autoscaler": {
			objects: []client.Object{
				kept(t, scaledFunction), kept(t, keptFunction), keptAutoscaler(t,
					"{currentReplicas: 3, desiredReplicas: 3, "+synced+"}"),
			},
			want: 5,
		},
		"a cached target needs no autoscaler": {
			objects: []client.Object{kept(t, scaledFunction), kept(t, keptFunction)},
			want:    5,
		},
		"at zero": {
			objects: []client.Object{
				kept(
					t,
					scaledDeployment,
				), keptAutoscaler(t, `{desiredReplicas: 0, conditions: [{type: AbleToScale, status: 'True', reason: SucceededGetScale},
  {type: ScalingActive, status: 'False', reason: ScalingDisabled}]}`),
			},
			want: 0,
		},
		"a write of the autoscaler": {
			objects: []client.Object{
				kept(t, scaledDeployment),
				keptAutoscaler(t,
					"{currentReplicas: 3, desiredReplicas: 9, conditions: [{type: AbleToScale, status: 'True', reason: "+
						"SucceededRescale}]}"),
			},
			want: 9,
		},
		"an autoscaler that has not synced": {
			objects: []client.Object{kept(t, scaledDeployment), keptAutoscaler(t, "{currentReplicas: 0, desiredReplicas: 0}")},
			wrong:   backlog.ErrNoData,
		},
		"an autoscaler without a target": {
			objects: []client.Object{
				kept(t, scaledDeployment),
				keptAutoscaler(t,
					"{currentReplicas: 3, desiredReplicas: 3, conditions: [{type: AbleToScale, status: 'False', reason: "+
						"FailedGetScale}]}"),
			},
			wrong: backlog.ErrNoData,
		},
		"an autoscaler of another ScaledObject": {
			objects: []client.Object{
				kept(t, scaledDeployment),
				kept(
					t,
					`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: media, name: keda-hpa-so},
  status: {currentReplicas: 3, `+synced+"}}",
				),
			},
			wrong: backlog.ErrNoData,
		},
		"no autoscaler yet": {objects: []client.Object{kept(t, scaledDeployment)}, wrong: backlog.ErrNoData},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := cachedScaledObjects(t,
				test.objects...).Replicas(types.NamespacedName{Namespace: "media", Name: "so"})
			require.ErrorIs(t, err, test.wrong)
			require.Equal(t, test.want, got)
		})
	}
}

func cachedScaledObjects(t *testing.T, objects ...client.Object) *ScaledObjects {
	t.Helper()
	scheme, err := Scheme()
	require.NoError(t, err)
	builder := fake.NewClientBuilder().WithScheme(
		scheme,
	).WithObjects(
		objects...).WithIndex(
		cluster.NewUnstructured(cluster.KindAutoscaler),
		target.IndexScaledObject,
		target.IndexByScaledObject,
	)
	return &ScaledObjects{
		reader: target.NewReader(builder.Build(), func(string) bool { return true }),
		unread: func() error { return nil },
	}
}

func TestMissingScaledObject(t *testing.T) {
	key := types.NamespacedName{Namespace: "media", Name: "so"}
	s := cachedScaledObjects(t)
	_, err := s.Replicas(key)
	require.True(t, apierrors.IsNotFound(err), err)

	s = cachedScaledObjects(t, kept(t, scaledFunction))
	_, err = s.Replicas(key)
	require.True(t, apierrors.IsNotFound(err), "its target is not there: %v", err)

	absent := errors.New("not installed")
	s.unread = func() error { return absent }
	_, err = s.Replicas(key)
	require.ErrorIs(t, err, absent)
}
