// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestBadMetadataAreToldInTheReadyCondition: the condition has the scaler's message, and the target stays as it is.
// There is no event: KEDA also writes its message as the action of the event, for which the API server accepts 128
// bytes.
func TestBadMetadataAreToldInTheReadyCondition(t *testing.T) {
	onStage(t)
	for name, c := range map[string]struct {
		pull     bool
		metadata map[string]string
		says     []string
	}{
		"unknown-key": {
			metadata: map[string]string{"policy": "any", "messagePerReplica": "10"},
			says:     []string{"messagePerReplica cannot be set", "the keys of a trigger with policy are"},
		},
		"two-forms": {
			pull:     true,
			metadata: map[string]string{"policy": "any", "target": "Function/any"},
			says:     []string{"policy and target exclude each other: keep one of them"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond, Replicas: 2})
			since := time.Now()
			o := addScaledObject(t, stage.ScaledObjectConfig{Name: name, Pull: c.pull, Metadata: c.metadata})
			said := awaitCondition(t, o, "Ready", metav1.ConditionFalse, "ScaledObjectCheckFailed")
			t.Log(said)
			for _, text := range c.says {
				require.Contains(t, said, text)
			}
			hpa, err := o.Autoscaler(t.Context())
			require.NoError(t, err)
			require.Nil(t, hpa)
			require.Equal(t, []int{2}, scene.Mesh.Desired(stage.Namespace, f.Name, since))

			// A correction is enough.
			corrected := `{"spec":{"triggers":[{"type":"external","metadata":{"scalerAddress":%q,"target":"Function/%s","messagesPerReplica":"10"}}]}}`
			patch := fmt.Appendf(nil, corrected, scene.Scaler.Address, name)
			require.NoError(t, o.Patch(t.Context(), client.RawPatch(types.MergePatchType, patch)))
			awaitCondition(t, o, "Ready", metav1.ConditionTrue, "ScaledObjectReady")
			f.AwaitReplicas(t, 0, 0)
		})
	}
}

// TestAPolicyThatIsNotThereIsToldInAnEvent: the policy may be created later, so KEDA continues to poll, and its
// conditions only report an error. When both of its readers fail at the same moment, one of them counts as idle, which
// scales a target that was never active to zero at once, except with initialCooldownPeriod.
func TestAPolicyThatIsNotThereIsToldInAnEvent(t *testing.T) {
	t.Parallel()
	const name = "no-policy"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond, Replicas: 2})
	since := time.Now()
	o := addScaledObject(t, stage.ScaledObjectConfig{
		Name: name, Metadata: map[string]string{"policy": name},
		Edit: func(object *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(object.Object, int64(300), "spec", "initialCooldownPeriod"))
		},
	})
	t.Log(awaitCondition(t, o, "Ready", metav1.ConditionFalse, "TriggerError"))
	t.Log(awaitCondition(t, o, "HPAActive", metav1.ConditionFalse, "FailedGetExternalMetric"))
	scene.Await(t, "an event about it", func(ctx context.Context) (bool, string, error) {
		events, err := o.Events(ctx)
		said := events["KEDAScalerFailed"]
		return strings.Contains(said, `AutoscalingPolicy "no-policy" in namespace "default" not found: create it`), said, err
	})
	require.Equal(t, []int{2}, scene.Mesh.Desired(stage.Namespace, f.Name, since))
}
