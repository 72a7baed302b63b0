// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func TestWhatIsNotSaidHasADefault(t *testing.T) {
	onControlPlane(t)
	common := fields{
		"maxReplicas": int64(5), "minReplicas": int64(1), "latencyObjective": "60s", "mode": "Auto", "actuator": "Auto",
		"conflictPolicy": "Refuse", "strategies": []any{fields{"type": "Capacity"}},
	}
	with := func(more fields) fields { return merge(runtime.DeepCopyJSON(common), more) }
	tests := map[string]struct{ written, kept fields }{
		"of an object": {functionPolicy(nil), with(fields{"scaleTargetRef": function()})},
		"of a component": {
			functionPolicy(fields{"scaleTargetRef": meshTarget(nil)}),
			with(fields{"scaleTargetRef": meshTarget(nil)}),
		},
		"of a worker's function": {workerPolicy(nil, nil), with(fields{"pulsarFunctionRef": fields{
			"kind": "Function", "tenant": "public", "namespace": "default", "name": "resize",
		}})},
		"of a utilization": {
			strategies(fields{"type": "Utilization", "utilization": fields{}}),
			with(fields{
				"scaleTargetRef": function(),
				"strategies":     []any{fields{"type": "Utilization", "utilization": fields{"targetPercent": int64(70)}}},
			}),
		},
		"of a window": {
			functionPolicy(fields{"behavior": fields{"scaleDown": fields{}}}), with(fields{
				"scaleTargetRef": function(),
				"behavior": fields{"scaleDown": fields{
					"stabilizationWindowSeconds": int64(30),
					"cooldownPeriodSeconds":      int64(300),
					"selectPolicy":               "Max",
				}},
			}),
		},
		"of limits of scale-up": {
			functionPolicy(fields{"behavior": fields{"scaleUp": fields{}}}), with(fields{
				"scaleTargetRef": function(),
				"behavior":       fields{"scaleUp": fields{"stabilizationWindowSeconds": int64(0), "selectPolicy": "Max"}},
			}),
		},
		"but what is said stays": {
			functionPolicy(fields{
				"minReplicas": int64(0), "mode": "Paused", "actuator": "Direct", "conflictPolicy": "TakeOver",
				"latencyObjective": "5s",
			}),
			with(fields{
				"scaleTargetRef": function(), "minReplicas": int64(
					0), "mode": "Paused", "actuator": "Direct", "conflictPolicy": "TakeOver",
				"latencyObjective": "5s",
			}),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := manifest("defaulted", test.written)
			require.NoError(t, people.Create(t.Context(), object, client.DryRunAll))
			require.Equal(t, any(test.kept), object.Object["spec"])
		})
	}
}

// TestAClientWithGoTypesWritesWhatAPersonWould: empty structs must not be sent as half a target.
func TestAClientWithGoTypesWritesWhatAPersonWould(t *testing.T) {
	onControlPlane(t)
	p := &v1alpha1.AutoscalingPolicy{}
	p.Namespace, p.Name = namespace, "typed"
	p.Spec.PulsarFunctionRef.Name, p.Spec.MaxReplicas = "resize", 5
	// Go's zero duration is not omitted: it is sent, and rejected.
	require.ErrorContains(t, people.Create(t.Context(), p.DeepCopy(), client.DryRunAll),
		"latencyObjective must be from 1s to 24h")
	p.Spec.LatencyObjective.Duration = 60e9
	require.NoError(t, people.Create(t.Context(), p, client.DryRunAll))
	require.Equal(t, "public/default/resize", p.Spec.PulsarFunctionRef.FullName())
	require.Equal(t, v1alpha1.WorkloadFunction, p.Spec.PulsarFunctionRef.Kind)
	require.Equal(t, int32(1), *p.Spec.MinReplicas)
}

// TestAPolicyThatWasStoredBeforeTheFieldsCameReadsAsTheDefaults: defaults are set when an object is read, so a policy
// of an older definition needs no migration, and violated rules do not block unrelated changes.
func TestAPolicyThatWasStoredBeforeTheFieldsCameReadsAsTheDefaults(t *testing.T) {
	onControlPlane(t)
	const crd = "autoscalingpolicies.pulsar-autoscaler.io"
	old := manifest("stored-long-ago", functionPolicy(nil))
	broken := manifest("stored-broken", functionPolicy(fields{"maxReplicas": int64(2), "minReplicas": int64(3)}))
	withLooseSchema(t, crd, func() {
		require.NoError(t, people.Create(t.Context(), old))
		require.NotContains(t, old.Object["spec"], "minReplicas", "the older definition has no default")
		require.NoError(t, people.Create(t.Context(), broken))
	})
	t.Cleanup(func() { removeAll(t, old, broken) })

	require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(old), old))
	spec, _, err := unstructured.NestedMap(old.Object, "spec")
	require.NoError(t, err)
	require.Equal(t, int64(1), spec["minReplicas"])
	require.Equal(t, "Auto", spec["mode"])
	require.Equal(t, "Auto", spec["actuator"])
	require.Equal(t, "Refuse", spec["conflictPolicy"])

	before := broken.DeepCopy()
	broken.SetLabels(map[string]string{"team": "shop"})
	require.NoError(t, people.Patch(t.Context(), broken, client.MergeFrom(before)),
		"ratcheting: what did not change is not validated again")
	before = broken.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(broken.Object, int64(1), "spec", "maxReplicas"))
	require.ErrorContains(t, people.Patch(t.Context(), broken, client.MergeFrom(before)),
		"minReplicas must not be larger than maxReplicas")
}

// TestWhatTheAdapterHasNotReadIsNotReady: a tool that waits for a new object must not take it as complete.
func TestWhatTheAdapterHasNotReadIsNotReady(t *testing.T) {
	onControlPlane(t)
	for kind, spec := range map[string]fields{
		v1alpha1.KindAutoscalingPolicy: functionPolicy(nil), v1alpha1.KindAutoscalingPolicySet: mediaSet(nil, nil, nil),
	} {
		object := createOf(t, kind, "unread", spec)
		require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		require.Equal(t, fields{"conditions": []any{fields{
			"type": "Ready", "status": "Unknown", "reason": "Pending", "lastTransitionTime": "1970-01-01T00:00:00Z",
			"message": "the adapter has not read this object yet: if that lasts, check that the adapter runs",
		}}}, object.Object["status"], kind)
	}
}
