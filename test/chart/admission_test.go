// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

type fields = map[string]any

// policyOf returns a policy, or a set with the spec as its template.
func policyOf(kind string, spec fields) *unstructured.Unstructured {
	whole := fields{"maxReplicas": int64(5)}
	for key, value := range spec {
		whole[key] = value
	}
	if kind == "AutoscalingPolicySet" {
		whole = fields{
			"selector": fields{"matchLabels": fields{"team": "media"}}, "template": fields{"spec": whole},
		}
	} else if _, found := whole["pulsarFunctionRef"]; !found {
		whole["scaleTargetRef"] = fields{
			"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function", "name": "resize",
		}
	}
	object := &unstructured.Unstructured{Object: fields{"spec": whole}}
	object.SetAPIVersion("pulsar-autoscaler.io/v1alpha1")
	object.SetKind(kind)
	object.SetNamespace("limited")
	object.SetName("resize")
	return object
}

// as returns a client of a user with the permissions of an administrator, in a group.
func as(t *testing.T, user, group string) client.Client {
	t.Helper()
	config := controlPlane.Need(t).RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{group, "system:masters"}}
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c
}

func TestAdmissionPoliciesDenyWhatTheySay(t *testing.T) {
	if testing.Short() {
		t.Skip("needs helm and a real control plane")
	}
	people := as(t, "someone", "developers")
	limited := namespaceOf("limited")
	limited.Labels["pulsar-autoscaler.io/max-replicas"] = "10"
	require.NoError(t, people.Create(t.Context(), limited))
	t.Cleanup(func() { awaitAdmissionOfAll(t, people) }) // after the deletions: other tests use the API server too
	for _, object := range ofKind(render(t, valueFiles(t)["full"]), "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding") {
		require.NoError(t, people.Create(t.Context(), object))
		t.Cleanup(func() { require.NoError(t, people.Delete(context.WithoutCancel(t.Context()), object)) })
	}
	awaitAdmission(t, people)

	admin := func(url string) fields { return fields{"pulsar": fields{"adminURL": url}} }
	for name, test := range map[string]struct {
		spec   fields
		want   string // nothing is yes
		member string // who may
	}{
		"few replicas":    {spec: fields{"maxReplicas": int64(10)}},
		"many replicas":   {spec: fields{"maxReplicas": int64(11)}, want: "maxReplicas is 11, and label"},
		"refusing":        {spec: fields{"conflictPolicy": "Refuse"}},
		"taking over":     {spec: fields{"conflictPolicy": "TakeOver"}, want: "conflictPolicy TakeOver is for members", member: "platform"},
		"own credentials": {spec: fields{"pulsar": fields{"authSecret": "token"}}, want: "authSecret is for members", member: "platform"},
		"an allowed host": {spec: admin("https://pulsar.example.org")},
		"another host": {
			spec: admin("https://elsewhere.example.org"), want: "adminURL must be one of https://pulsar.example.org, https://east.example.org/",
		},
		"no host, as such": {spec: fields{"pulsar": fields{}}},
	} {
		for _, kind := range []string{"AutoscalingPolicy", "AutoscalingPolicySet"} {
			t.Run(kind+", "+name, func(t *testing.T) {
				err := people.Create(t.Context(), policyOf(kind, test.spec), client.DryRunAll)
				adapter := as(t, "system:serviceaccount:"+namespace+":adapter", "system:serviceaccounts")
				require.NoError(t, adapter.Create(t.Context(), policyOf(kind, test.spec), client.DryRunAll))
				if test.want == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, test.want)
				if test.member != "" {
					member := as(t, "other", test.member)
					require.NoError(t, member.Create(t.Context(), policyOf(kind, test.spec), client.DryRunAll))
				}
			})
		}
	}
	t.Run("a worker's host", func(t *testing.T) {
		worker := policyOf("AutoscalingPolicy", fields{"pulsarFunctionRef": fields{
			"tenant": "public", "namespace": "default", "name": "resize", "workerURL": "https://elsewhere.example.org",
		}})
		require.ErrorContains(t, people.Create(t.Context(), worker, client.DryRunAll), "workerURL must be one of")
	})
	t.Run("labels of what a member wrote", func(t *testing.T) {
		written := policyOf("AutoscalingPolicy", fields{"conflictPolicy": "TakeOver"})
		require.NoError(t, as(t, "other", "platform").Create(t.Context(), written))
		written.SetLabels(map[string]string{"team": "media"})
		require.NoError(t, people.Update(t.Context(), written))
		require.NoError(t, unstructured.SetNestedField(written.Object, int64(4), "spec", "maxReplicas"))
		require.ErrorContains(t, people.Update(t.Context(), written), "TakeOver is for members")
	})
	t.Run("a limit that is no number", func(t *testing.T) {
		limited.Labels["pulsar-autoscaler.io/max-replicas"] = "ten"
		require.NoError(t, people.Update(t.Context(), limited))
		awaitDenial(t, people, policyOf("AutoscalingPolicy", nil), "must be a number")
	})
	t.Run("a namespace without the label", func(t *testing.T) {
		free := policyOf("AutoscalingPolicy", fields{"maxReplicas": int64(1000)})
		free.SetNamespace(corev1.NamespaceDefault)
		require.NoError(t, people.Create(t.Context(), free, client.DryRunAll))
	})
}

// awaitAdmission waits until the API server enforces all four policies, about a second after they were written.
func awaitAdmission(t *testing.T, people client.Client) {
	t.Helper()
	for denial, spec := range map[string]fields{
		"maxReplicas is 11":        {"maxReplicas": int64(11)},
		"TakeOver is for members":  {"conflictPolicy": "TakeOver"},
		"authSecret is for":        {"pulsar": fields{"authSecret": "token"}},
		"adminURL must be one of ": {"pulsar": fields{"adminURL": "https://elsewhere.example.org"}},
	} {
		awaitDenial(t, people, policyOf("AutoscalingPolicy", spec), denial)
	}
}

// awaitAdmissionOfAll waits until the API server enforces none of them.
func awaitAdmissionOfAll(t *testing.T, people client.Client) {
	t.Helper()
	denied := policyOf("AutoscalingPolicy", fields{
		"maxReplicas": int64(11), "conflictPolicy": "TakeOver",
		"pulsar": fields{"authSecret": "token", "adminURL": "https://elsewhere.example.org"},
	})
	denied.SetName("unlimited") // there is a "resize"
	ctx := context.WithoutCancel(t.Context())
	require.NoError(t, cluster.WaitFor(ctx, "every policy to be allowed", 100*time.Millisecond,
		func(ctx context.Context) (bool, string, error) {
			err := people.Create(ctx, denied.DeepCopy(), client.DryRunAll)
			return err == nil, "", err
		}))
}

func awaitDenial(t *testing.T, people client.Client, object *unstructured.Unstructured, denial string) {
	t.Helper()
	err := cluster.WaitFor(t.Context(), denial, 100*time.Millisecond, func(ctx context.Context) (bool, string, error) {
		err := people.Create(ctx, object.DeepCopy(), client.DryRunAll)
		if err == nil {
			return false, "it is allowed", nil
		}
		return strings.Contains(err.Error(), denial), err.Error(), nil
	})
	require.NoError(t, err)
}
