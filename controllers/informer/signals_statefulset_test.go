// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// recordedResize is a StatefulSet of the function worker.
func recordedResize(t *testing.T, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	object := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
	object.SetResourceVersion("")
	if change != nil {
		change(object)
	}
	return object
}

func TestStatefulSetUsesTheClusterOfItsPolicy(t *testing.T) {
	const name = "pf-public-default-resize"
	policyAt := func(policy, admin string) *v1alpha1.AutoscalingPolicy {
		p := fixture.StatefulSetPolicy(name)
		p.Name, p.UID, p.Spec.Pulsar.AdminURL = policy, types.UID(policy), admin
		return p
	}
	elsewhere := policyAt("a-elsewhere", "http://elsewhere:8080")
	elsewhere.Namespace = "other"
	ofAnother := policyAt("a-of-another", "http://elsewhere:8080")
	ofAnother.Spec.ScaleTargetRef.Name = "pf-public-default-job"
	tests := map[string]struct {
		policies []client.Object
		want     string
		wrong    string
	}{
		"the cluster of the policy": {
			policies: []client.Object{elsewhere, ofAnother, policyAt("p", "http://pulsar:8080")},
			want:     "http://pulsar:8080",
		},
		"the first of two policies": {
			policies: []client.Object{policyAt("p", "http://p:8080"), policyAt("b", "http://b:8080")},
			want:     "http://b:8080",
		},
		"no cluster without a policy": {
			policies: []client.Object{elsewhere, ofAnother},
			wrong:    "--pulsar-admin-url of the adapter",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			env := newTestEnv(t, nil, append(test.policies, recordedResize(t, nil))...)
			s, resolve := testSignals(t, env)
			question, key := cluster.ResourceFor(cluster.KindStatefulSet), types.NamespacedName{Namespace: "default", Name: name}
			_, err := s.Read(question, key, backlog.Slim, env.now)
			require.ErrorIs(t, err, backlog.ErrNoData)
			require.Equal(t, 1, resolve())
			subscription, err := s.subscription(signalKey{resource: question, key: key}, backlog.Slim, env.now)
			if test.wrong != "" {
				require.ErrorContains(t, err, test.wrong)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, subscription.Cluster.AdminURL)
			require.Equal(t, "public/default/resize", subscription.Name)
			require.Equal(t, []string{"persistent://public/default/resize-in"}, subscription.Topics)
		})
	}
}

func TestOtherStatefulSetsAreRefusedAtOnce(t *testing.T) {
	tests := map[string]struct {
		change func(*unstructured.Unstructured)
		want   string
	}{
		"a database": {
			change: func(object *unstructured.Unstructured) {
				fixture.SetCommand(t, object, []any{"postgres", "-D", "/data"})
			},
			want: "Pulsar's function worker did not create StatefulSet pf-public-default-resize: its containers do not run " +
				"a Pulsar instance " +
				"(--function_details or -instance-conf)",
		},
		"one of Function Mesh": {
			change: func(object *unstructured.Unstructured) {
				object.SetOwnerReferences([]metav1.OwnerReference{{
					APIVersion: cluster.WorkloadGVK(
						cluster.KindFunction,
					).GroupVersion().String(), Kind: cluster.KindFunction, Name: "resize", UID: "1", Controller: new(true),
				}})
			},
			want: "StatefulSet pf-public-default-resize is controlled by Function resize: request the metrics of that",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			object := recordedResize(t, test.change)
			env := newTestEnv(t, nil, object)
			s, resolve := testSignals(t, env)
			_, err := s.Read(
				cluster.ResourceFor(cluster.KindStatefulSet),
				client.ObjectKeyFromObject(object),
				backlog.Slim,
				env.now,
			)
			require.EqualError(t, err, test.want)
			require.Zero(t, resolve(), "no key is queued")
		})
	}
}
