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
	rbacv1 "k8s.io/api/rbac/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func TestEveryBindingGrantsTheAdapter(t *testing.T) {
	account := all[*corev1.ServiceAccount](t)[0]
	require.Equal(t, account.Name, all[*appsv1.Deployment](t)[0].Spec.Template.Spec.ServiceAccountName)
	var subjects []rbacv1.Subject
	for _, binding := range all[*rbacv1.ClusterRoleBinding](t) {
		subjects = append(subjects, binding.Subjects...)
	}
	for _, binding := range all[*rbacv1.RoleBinding](t) {
		subjects = append(subjects, binding.Subjects...)
	}
	for _, subject := range subjects {
		require.Equal(t, rbacv1.Subject{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}, subject)
	}
	require.Len(t, subjects, 15)
}

func TestNoRuleGrantsEverything(t *testing.T) {
	every := func(string) bool { return true }
	var rules []rbacv1.PolicyRule
	for _, role := range where[*rbacv1.ClusterRole](t, every) {
		rules = append(rules, role.Rules...)
	}
	for _, role := range where[*rbacv1.Role](t, every) {
		rules = append(rules, role.Rules...)
	}
	for _, rule := range rules {
		for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
			require.NotContains(t, word, "*")
		}
		isOurs := len(rule.ResourceNames) > 0
		if !isOurs && (slices.Contains(rule.Resources, "configmaps") || slices.Contains(rule.Resources, "secrets")) {
			require.Equal(t, []string{"get"}, rule.Verbs, "ConfigMaps and Secrets of other teams are not to be listed")
		}
	}
}

// rightsOf are the verbs by group and resource.
func rightsOf(t *testing.T, roles []*rbacv1.ClusterRole) map[string][]string {
	t.Helper()
	granted := map[string][]string{}
	for _, role := range roles {
		for _, rule := range role.Rules {
			require.Empty(t, rule.NonResourceURLs)
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					key := strings.TrimPrefix(group+"/"+resource, "/")
					granted[key] = append(granted[key], rule.Verbs...)
				}
			}
		}
	}
	return granted
}

// A user has to grant each right, so that none is added unnoticed.
func TestTheAdapterMayDoThisAndNoMore(t *testing.T) {
	granted := rightsOf(t, all[*rbacv1.ClusterRole](t))
	require.Equal(t, map[string][]string{
		"pulsar-autoscaler.io/autoscalingpolicies":          {"get", "list", "watch", "patch", "create", "delete"},
		"pulsar-autoscaler.io/autoscalingpolicies/status":   {"patch"},
		"pulsar-autoscaler.io/autoscalingpolicysets":        {"get", "list", "watch"},
		"pulsar-autoscaler.io/autoscalingpolicysets/status": {"patch"},
		"compute.functionmesh.io/functions":                 {"get", "list", "watch", "patch"},
		"compute.functionmesh.io/sinks":                     {"get", "list", "watch", "patch"},
		"compute.functionmesh.io/sources":                   {"get", "list", "watch", "patch"},
		"compute.functionmesh.io/functionmeshes":            {"get", "list", "watch", "patch"},
		"compute.functionmesh.io/functions/scale":           {"patch"},
		"compute.functionmesh.io/sinks/scale":               {"patch"},
		"compute.functionmesh.io/sources/scale":             {"patch"},
		"apps/statefulsets":                                 {"get", "list", "watch"},
		"apps/statefulsets/scale":                           {"patch"},
		"apps/deployments":                                  {"get", "list", "watch"},
		"apps/deployments/scale":                            {"get", "patch"},
		"argoproj.io/rollouts":                              {"get"},
		"argoproj.io/rollouts/scale":                        {"get", "patch"},
		"autoscaling/horizontalpodautoscalers":              {"get", "list", "watch", "create", "patch", "delete"},
		"keda.sh/scaledobjects":                             {"get", "list", "watch", "delete", "create", "patch", "patch"},
		"autoscaling.k8s.io/verticalpodautoscalers":         {"get", "list", "watch"},
		"apiregistration.k8s.io/apiservices":                {"create", "patch", "delete", "get", "list", "watch"},
		"rbac.authorization.k8s.io/clusterroles":            {"get"},
		"configmaps":                                        {"get"},
		"secrets":                                           {"get"},
		"pods":                                              {"list", "watch"},
		"events":                                            {"create", "patch"},
		"events.k8s.io/events":                              {"create", "patch"},
	}, granted)
}

// What may read the metrics is bound to it by the user, who alone knows the name of its ServiceAccount.
func TestTheMetricsReaderMayReadMetricsAndNothingElse(t *testing.T) {
	roles := where[*rbacv1.ClusterRole](t, isMonitorings)
	require.Len(t, roles, 1)
	require.Equal(t, []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, roles[0].Rules)
}

// TestTheCertificatesRightsAreByName: they would else be those to take over any API group of the cluster.
func TestTheCertificatesRightsAreByName(t *testing.T) {
	isCertificates := func(name string) bool { return name == ofCertificate }
	var rules []rbacv1.PolicyRule
	for _, role := range where[*rbacv1.ClusterRole](t, isCertificates) {
		require.Contains(t, role.Rules[1].ResourceNames, role.Name, "it may own the APIServices")
		rules = append(rules, role.Rules...)
	}
	for _, role := range where[*rbacv1.Role](t, isCertificates) {
		rules = append(rules, role.Rules...)
	}
	require.Len(t, rules, 4)
	for _, rule := range rules {
		require.NotEmpty(t, rule.ResourceNames, rule.Resources)
	}
	var served []string
	for _, service := range all[*apiregistrationv1.APIService](t) {
		served = append(served, service.Name)
	}
	require.ElementsMatch(t, served, rules[0].ResourceNames)
}

func TestSecretsAreGrantedInAFileThatCanBeLeftOut(t *testing.T) {
	granted := map[string]bool{}
	for _, name := range files(t) {
		for _, object := range decode(t, name) {
			role, ok := object.(*rbacv1.ClusterRole)
			if !ok {
				continue
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") {
					require.Len(t, role.Rules, 1, "and grants nothing else")
					granted[name] = true
				}
			}
		}
	}
	require.Equal(t, map[string]bool{"rbac/secrets.yaml": true, "scaler/secrets/clusterrole.yaml": true}, granted)
}
