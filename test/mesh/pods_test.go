// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

func TestAReplicaStartsOnceItsFunctionCountsIt(t *testing.T) {
	for name, test := range map[string]struct {
		counted     int32
		annotations map[string]string
		started     bool
	}{
		"the status has not counted the pod yet": {counted: 2},
		"the status counts the pod":              {counted: 3, started: true},
		"nothing counts pods of an unmanaged Function": {
			annotations: map[string]string{annotationManaged: "false"}, started: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Function("default", "f", FunctionConfig{Topics: []string{"in"}, PulsarConfig: "pulsar", Replicas: 3})
			f.SetAnnotations(test.annotations)
			require.NoError(t, writeStatus(f, status{Replicas: test.counted}))
			third := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "f-function-2", UID: "a", Labels: map[string]string{
					labelComponent: component{kind: KindFunction}.suffix(), labelName: "f", appsv1.PodIndexLabel: "2",
				},
			}}
			c := fake.NewClientBuilder().WithObjects(f, third,
				PulsarConfig("default", "pulsar", "http://127.0.0.1:8080", "pulsar://127.0.0.1:6650")).Build()
			i := &instances{client: c, direct: c, runner: &fakeRunner{}}
			found, err := i.find(t.Context(), third)
			require.Equal(t, test.started, found != nil)
			if !test.started {
				require.ErrorIs(t, err, pods.ErrNotYet)
			}
		})
	}
}
