// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/deploy/crd"
)

// adapterName is the name of the adapter's Deployment, Service and ServiceAccount.
const adapterName = "adapter"

// policyResource is the resource of policies.
const policyResource = "autoscalingpolicies"

// checker checks a cluster. What it may not read is unknown.
type checker struct {
	kube    client.Client
	adapter types.NamespacedName
	now     time.Time
}

// installation are the checks of --install, in a namespace or in all.
func (c checker) installation(ctx context.Context, namespace string) []checked {
	list := []checked{c.definition(ctx, policyResource), c.definition(ctx, "autoscalingpolicysets")}
	list = append(list, c.deployment(ctx))
	list = append(list, c.metricsAPIs(ctx, "")...)
	return append(list, c.rights(ctx, namespace, allRights()))
}

// policy are the checks of a policy that the user wants in a mode.
func (c checker) policy(ctx context.Context, p *v1alpha1.AutoscalingPolicy, mode v1alpha1.Mode) []checked {
	var list []checked
	if mayHaveHPA(p.Spec) { // only HorizontalPodAutoscalers read decisions from them
		var named checkResult
		if p.Spec.Actuator == v1alpha1.ActuatorHPA {
			named = inAuto(mode)
		}
		list = c.metricsAPIs(ctx, named)
	}
	list = append(list, c.rights(ctx, p.Namespace, c.neededRights(ctx, p, mode)))
	verdict := statusCheck{p, mode}.checks()
	if len(verdict) > 1 {
		verdict = append(verdict, c.receiveQueue(ctx, p))
	}
	return append(list, verdict...)
}

// mayHaveHPA reports whether a HorizontalPodAutoscaler may scale the target. What has no scale subresource has none.
func mayHaveHPA(spec v1alpha1.AutoscalingPolicySpec) bool {
	scalable := spec.PulsarFunctionRef.Name == "" && spec.ScaleTargetRef.Component.Name == ""
	return scalable && spec.Actuator != v1alpha1.ActuatorDirect && spec.Actuator != v1alpha1.ActuatorKEDA
}

func (c checker) definition(ctx context.Context, resource string) checked {
	check, version := "CRD "+resource, v1alpha1.GroupVersion().Version
	var crd apiextensionsv1.CustomResourceDefinition
	err := c.kube.Get(ctx, client.ObjectKey{Name: resource + "." + v1alpha1.Group}, &crd)
	switch {
	case apierrors.IsNotFound(err):
		return checked{check, resultError, "", "it is not installed: install the chart, or apply deploy/crd"}
	case err != nil:
		return unreadable(check, "get on customresourcedefinitions.apiextensions.k8s.io", err)
	}
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Served
	})
	if at < 0 {
		return checked{check, resultError, "", "it does not serve version " + version +
			": upgrade the chart to the version of kubectl pap"}
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status != apiextensionsv1.ConditionTrue {
			return checked{check, resultError, condition.Reason, condition.Message}
		}
	}
	if missing := missingFields(crd.Spec.Versions[at].Schema); resource == policyResource && len(missing) > 0 {
		return checked{check, resultWarning, "", fmt.Sprintf("it does not have %s, so the API server drops these fields: "+
			"upgrade the chart to the version of kubectl pap", strings.Join(missing, ", "))}
	}
	return checked{check, resultOK, "", "version " + version + " is served"}
}

func (c checker) deployment(ctx context.Context) checked {
	const check = "adapter"
	var d appsv1.Deployment
	err := c.kube.Get(ctx, c.adapter, &d)
	switch {
	case apierrors.IsNotFound(err):
		return checked{check, resultError, "", fmt.Sprintf("namespace %s has no Deployment %s: install the chart, or set "+
			"--adapter-namespace", c.adapter.Namespace, c.adapter.Name)}
	case err != nil:
		return unreadable(check, "get on deployments.apps in namespace "+c.adapter.Namespace, err)
	}
	wanted, available := int32(1), d.Status.AvailableReplicas
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	found := checked{check, resultOK, "", fmt.Sprintf("%d of %d replicas are available", available, wanted)}
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		found.Message += ", of " + containers[0].Image
	}
	logs := fmt.Sprintf(": see kubectl -n %s describe pods, and kubectl -n %[1]s logs deployment/%s", c.adapter.Namespace,
		c.adapter.Name)
	switch {
	case available == 0:
		found.Result, found.Message = resultError, found.Message+logs
	case available < wanted:
		found.Result, found.Message = resultWarning, found.Message+logs
	case readsNoPulsar(d):
		found.Result = resultWarning
		found.Message += "; it may read no Pulsar: set pulsar.adminURL or pulsar.allowedHosts of the chart " +
			"(--pulsar-admin-url, --allowed-pulsar-hosts)"
	}
	return found
}

// readsNoPulsar reports whether the flags of the adapter allow no Pulsar.
func readsNoPulsar(d appsv1.Deployment) bool {
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, arg := range container.Args {
			flag, value, assigned := strings.Cut(arg, "=") // unassigned, the value is the next argument
			names := flag == "--pulsar-admin-url" || flag == "--allowed-pulsar-hosts"
			if names && (value != "" || !assigned) {
				return false
			}
		}
	}
	return true
}

// metricsAPIs checks which server HorizontalPodAutoscalers get metrics from, and its certificate. If that is not the
// adapter, named is the result for a policy that names actuator HPA; empty for any other.
func (c checker) metricsAPIs(ctx context.Context, named checkResult) []checked {
	const check = "metrics API"
	var services apiregistrationv1.APIServiceList
	if err := c.kube.List(ctx, &services); err != nil {
		return []checked{unreadable(check, "list on apiservices.apiregistration.k8s.io", err)}
	}
	custom := cluster.Preferred(services.Items, cluster.CustomMetrics)
	if custom == nil {
		return []checked{unserved(check, "no APIService serves custom.metrics.k8s.io", "see the log of the "+
			"adapter, which needs deploy/rbac/certificate.yaml to write APIServices, and --tls-ca-file with "+
			"--serving-certificate=Files", named)}
	}
	var list []checked
	if holder := cluster.HolderOf(custom, c.adapter); holder == "" {
		list = append(list, c.server(check, custom), c.certificate(custom))
	} else {
		list = append(list, unserved(check, holder+" serves "+custom.Spec.Group, "remove its APIServices of this "+
			"group to use HorizontalPodAutoscalers (or set --adapter-namespace, if it is the adapter)", named))
	}
	external := cluster.Preferred(services.Items, cluster.ExternalMetrics)
	if external != nil && cluster.HolderOf(external, c.adapter) == "" {
		list = append(list, c.server("external metrics", external))
	}
	return list
}

// unserved is the check of metrics that another server has, or none. Actuator Auto scales without them.
func unserved(check, who, fix string, named checkResult) checked {
	if named != "" {
		return checked{check, named, "", who + ", so no HorizontalPodAutoscaler reads decisions: set actuator Auto or " +
			"Direct, or " + fix}
	}
	return checked{check, resultWarning, "", who + ", so policies scale through KEDA, or the adapter writes replicas " +
		"itself: " + fix}
}

// server checks whether the API server reaches the adapter.
func (c checker) server(check string, s *apiregistrationv1.APIService) checked {
	available := helper.GetAPIServiceConditionByType(s, apiregistrationv1.Available)
	service := "Service " + c.adapter.String()
	switch {
	case available == nil || available.Status != apiregistrationv1.ConditionTrue:
		found := checked{check, resultError, "", "the API server has not reached " + service + " yet"}
		if available != nil {
			found.Reason, found.Message = available.Reason, available.Message
		}
		found.Message += fmt.Sprintf(": see kubectl -n %s logs deployment/%s, and docs/certificates.md", c.adapter.Namespace,
			c.adapter.Name)
		return found
	default:
		return checked{check, resultOK, available.Reason, service + " serves " + s.Name}
	}
}

// certificate checks the authorities that the API server trusts for the adapter.
func (c checker) certificate(s *apiregistrationv1.APIService) checked {
	const check = "certificate"
	if s.Spec.InsecureSkipTLSVerify {
		return checked{check, resultWarning, "", "the API server does not verify the adapter: set " +
			"servingCertificate.mode of the chart to Self, CertManager or Secret"}
	}
	authorities, err := cert.ParseCertsPEM(s.Spec.CABundle)
	if err != nil {
		return checked{check, resultError, "", fmt.Sprintf("caBundle of APIService %s has no certificate (%s): see "+
			"docs/certificates.md", s.Name, err)}
	}
	last := slices.MaxFunc(authorities, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	const renewedBefore = 10 // parts of its lifetime; a third of it is left when an authority is renewed
	until := last.NotAfter.UTC().Format(time.RFC3339)
	found := checked{check, resultOK, "", "the authority in caBundle is valid until " + until}
	switch remaining := last.NotAfter.Sub(c.now); {
	case remaining <= 0:
		found.Result = resultError
	case remaining < last.NotAfter.Sub(last.NotBefore)/renewedBefore:
		found.Result = resultWarning
	default:
		return found
	}
	found.Message += fmt.Sprintf(", and was not renewed: see kubectl -n %s logs deployment/%s, and docs/certificates.md",
		c.adapter.Namespace, c.adapter.Name)
	return found
}

// mostFields that a CRD lacks are named.
const mostFields = 5

// missingFields are fields of policies that this program knows and the schema in the cluster does not have, as in an
// older one.
func missingFields(live *apiextensionsv1.CustomResourceValidation) []string {
	var known apiextensionsv1.CustomResourceDefinition
	_ = yaml.Unmarshal(crd.AutoscalingPolicies, &known) // it is part of this program
	if live == nil {
		return nil
	}
	missing := absentFields("", known.Spec.Versions[0].Schema.OpenAPIV3Schema, live.OpenAPIV3Schema)
	if more := len(missing) - mostFields; more > 0 {
		missing = append(missing[:mostFields], fmt.Sprintf("and %d more", more))
	}
	return missing
}

// absentFields are the paths of fields of a schema that the other does not have.
func absentFields(path string, known, live *apiextensionsv1.JSONSchemaProps) (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(known.Properties)) {
		field := known.Properties[name]
		if other, found := live.Properties[name]; found {
			paths = append(paths, absentFields(path+name+".", &field, &other)...)
		} else {
			paths = append(paths, path+name)
		}
	}
	if known.Items != nil && known.Items.Schema != nil && live.Items != nil && live.Items.Schema != nil {
		paths = append(paths, absentFields(path, known.Items.Schema, live.Items.Schema)...)
	}
	return paths
}
