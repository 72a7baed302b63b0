// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func isScalers(name string) bool { return strings.HasPrefix(name, ofScaler) }

// KEDA's gRPC client spreads what it asks over the addresses that a name has.
func TestTheServiceOfTheScalerIsHeadlessAndReachesIt(t *testing.T) {
	deployment, service := where[*appsv1.Deployment](t, isScalers)[0], where[*corev1.Service](t, isScalers)[0]
	pod := deployment.Spec.Template
	require.Equal(t, corev1.ClusterIPNone, service.Spec.ClusterIP)
	require.Equal(t, service.Namespace, deployment.Namespace)
	require.Equal(t, deployment.Spec.Selector.MatchLabels, service.Spec.Selector)
	require.Subset(t, pod.Labels, service.Spec.Selector)
	require.Equal(t, service.Spec.Selector,
		where[*policyv1.PodDisruptionBudget](t, isScalers)[0].Spec.Selector.MatchLabels)
	require.NotSubset(t, all[*appsv1.Deployment](t)[0].Spec.Template.Labels, service.Spec.Selector,
		"the adapter is another")
	ports := map[string]int32{}
	for _, port := range pod.Spec.Containers[0].Ports {
		ports[port.Name] = port.ContainerPort
	}
	// A headless Service does not translate ports: its own is the pod's.
	require.Equal(t, ports[service.Spec.Ports[0].TargetPort.String()], service.Spec.Ports[0].Port)
	require.GreaterOrEqual(t, *deployment.Spec.Replicas, int32(2))
}

func TestEveryBindingOfTheScalerGrantsIt(t *testing.T) {
	account := where[*corev1.ServiceAccount](t, isScalers)[0]
	require.Equal(t, account.Name, where[*appsv1.Deployment](t, isScalers)[0].Spec.Template.Spec.ServiceAccountName)
	var subjects []rbacv1.Subject
	for _, binding := range where[*rbacv1.ClusterRoleBinding](t, isScalers) {
		subjects = append(subjects, binding.Subjects...)
	}
	for _, binding := range where[*rbacv1.RoleBinding](t, isScalers) {
		subjects = append(subjects, binding.Subjects...)
	}
	for _, subject := range subjects {
		require.Equal(t, rbacv1.Subject{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}, subject)
	}
	require.Len(t, subjects, 7)
}

// It writes nothing but two Secrets, with --serving-certificate=Self.
func TestTheScalerMayReadThisAndNoMore(t *testing.T) {
	read := []string{"get", "list", "watch"}
	require.Equal(t, map[string][]string{
		"pulsar-autoscaler.io/autoscalingpolicies": read,
		"compute.functionmesh.io/functions":        read,
		"compute.functionmesh.io/sinks":            read,
		"compute.functionmesh.io/sources":          read,
		"compute.functionmesh.io/functionmeshes":   read,
		"apps/statefulsets":                        read,
		"keda.sh/scaledobjects":                    read,
		"autoscaling/horizontalpodautoscalers":     read,
		"configmaps":                               {"get"},
		"secrets":                                  {"get"},
		"pods":                                     {"list", "watch"},
		"rbac.authorization.k8s.io/clusterroles":   {"get"},
	}, rightsOf(t, where[*rbacv1.ClusterRole](t, isScalers)))
	for _, role := range where[*rbacv1.ClusterRole](t, func(name string) bool { return name == ofScalersCertificate }) {
		require.Equal(t, []string{role.Name}, role.Rules[0].ResourceNames, "it may read the owner of its Secrets alone")
	}

	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range where[*rbacv1.Role](t, isScalers) {
		rules[role.Namespace+"/"+role.Name] = role.Rules
	}
	require.Equal(t, map[string][]rbacv1.PolicyRule{
		"pulsar-autoscaler/scaler-lease": {{ // the Lease is where the adapter is
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			ResourceNames: []string{"pulsar-autoscaler-adapter"}, Verbs: read,
		}},
		"pulsar-autoscaler/scaler-serving": {{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"scaler-serving"},
			Verbs: append(slices.Clone(read), "create", "patch"),
		}},
		"keda/pulsar-autoscaler-scaler-serving": {{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"pulsar-autoscaler-scaler"},
			Verbs: []string{"get", "create", "patch"},
		}},
	}, rules)
}
