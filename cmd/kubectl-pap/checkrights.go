// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// right is a permission of the adapter.
type right struct {
	verb, group, resource, subresource string
	// value of the chart and file of deploy/rbac that grant it; no value for what the chart always grants.
	value, file string
	// missing is the result if the adapter does not have it: error, warning, or ok for what is not granted by default.
	missing checkResult
}

func (r right) String() string {
	resource := r.resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	return r.verb + " " + resource
}

func (r right) fix() string {
	if r.value == "" {
		return "upgrade the chart, or apply deploy/rbac/" + r.file
	}
	fix := fmt.Sprintf("set %s of the chart, or apply deploy/rbac/%s", r.value, r.file)
	switch {
	case r.missing != resultWarning:
	case r.value == valueTakeOver:
		fix += ", if it has to take over maxReplicas or a ScaledObject: the policy does not scale beside one"
	case r.value == valueSecrets:
		fix += "; until then it uses its own credentials, if it has any"
	}
	return fix
}

// Values of the chart that some policies need.
const (
	valueTakeOver = "rbac.takeOver"
	valueSecrets  = "rbac.secrets"
)

// Groups of resources.
const (
	groupApps        = "apps"
	groupKEDA        = "keda.sh"
	groupAutoscaling = "autoscaling"
)

const scaleSubresource = "scale"

// allRights are an example of each part of the permissions.
func allRights() []right {
	const role = "clusterrole.yaml"
	return []right{
		{"watch", v1alpha1.Group, policyResource, "", "", role, resultError},
		{"patch", v1alpha1.Group, policyResource, "status", "", role, resultError},
		{"watch", cluster.FunctionMeshGroup, "functions", "", "", role, resultError},
		{"patch", cluster.FunctionMeshGroup, "functions", scaleSubresource, "", role, resultError},
		{"watch", groupApps, "statefulsets", "", "", role, resultError},
		{"create", groupAutoscaling, "horizontalpodautoscalers", "", "", role, resultError},
		{"delete", groupAutoscaling, "horizontalpodautoscalers", "", "", role, resultError},
		{"watch", groupKEDA, "scaledobjects", "", "", role, resultError},
		{"watch", "apiregistration.k8s.io", "apiservices", "", "", "metricsapi.yaml", resultError},
		{"patch", groupApps, "statefulsets", scaleSubresource, "rbac.statefulSets", "statefulsets.yaml", resultWarning},
		{"patch", groupApps, "deployments", scaleSubresource, "rbac.deployments", "deployments.yaml", resultWarning},
		{"list", "", "pods", "", "rbac.pods", "pods.yaml", resultWarning},
		{"get", "", "secrets", "", valueSecrets, "secrets.yaml", resultOK},
		{"patch", cluster.FunctionMeshGroup, "functions", "", valueTakeOver, "takeover.yaml", resultOK},
		{"patch", cluster.FunctionMeshGroup, "functionmeshes", "", "rbac.functionMeshes", "functionmeshes.yaml", resultOK},
		{"create", groupKEDA, "scaledobjects", "", "scaler.enabled", "keda.yaml", resultOK},
		{"patch", "argoproj.io", "rollouts", scaleSubresource, "rbac.rollouts", "rollouts.yaml", resultOK},
	}
}

// withoutScaleRight is a warning for a StatefulSet that an autoscaler scales: it is for changes from and to zero. Those
// of other kinds come with the right to read them.
func withoutScaleRight(p *v1alpha1.AutoscalingPolicy) checkResult {
	direct := p.Spec.Actuator == v1alpha1.ActuatorDirect ||
		p.Status.Actuator != nil && p.Status.Actuator.Type == v1alpha1.ActuatorDirect
	if p.Spec.ScaleTargetRef.Kind == cluster.KindStatefulSet && !direct && decide.MinReplicas(p.Spec) > 0 {
		return resultWarning
	}
	return resultError
}

// policyRights are an error if a policy never scales without them, and a warning if it may.
func policyRights(kinds meta.RESTMapper, p *v1alpha1.AutoscalingPolicy) (needed []right) {
	spec := p.Spec
	add := func(missing checkResult, r right) {
		r.missing = missing
		needed = append(needed, r)
	}
	ref := spec.ScaleTargetRef
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	// A kind that is not installed is a problem of the target.
	if mapping, err := kinds.RESTMapping(group.GroupKind(), group.Version); ref.Name != "" && err == nil {
		resource := mapping.Resource.Resource
		isComponent := ref.Component.Name != ""
		if isComponent {
			add(resultError, right{"patch", group.Group, resource, "", "rbac.functionMeshes", "functionmeshes.yaml", ""})
		} else {
			add(withoutScaleRight(p), scaleRight(group.Group, resource))
		}
		if spec.ConflictPolicy == v1alpha1.ConflictTakeOver && group.Group == cluster.FunctionMeshGroup && !isComponent {
			add(resultWarning, right{"patch", group.Group, resource, "", valueTakeOver, "takeover.yaml", ""})
		}
	}
	if spec.ConflictPolicy == v1alpha1.ConflictTakeOver {
		kind := cluster.GVK(cluster.KindScaledObject)
		if _, err := kinds.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			add(resultWarning, right{"patch", groupKEDA, "scaledobjects", "", valueTakeOver, "takeover.yaml", ""})
		}
	}
	switch spec.Actuator {
	case v1alpha1.ActuatorDirect:
	case v1alpha1.ActuatorKEDA:
		add(resultError, right{"create", groupKEDA, "scaledobjects", "", "scaler.enabled", "keda.yaml", ""})
	default:
		add(resultError, right{"create", groupAutoscaling, "horizontalpodautoscalers", "", "", "clusterrole.yaml", ""})
	}
	if pulsar := spec.Pulsar; pulsar != nil && (pulsar.AuthSecret != "" || pulsar.TLSConfig != nil) {
		missing := resultWarning
		if spec.PulsarFunctionRef.Name != "" { // function workers are not shown the adapter's own credentials
			missing = resultError
		}
		add(missing, right{"get", "", "secrets", "", valueSecrets, "secrets.yaml", ""})
	}
	return needed
}

// neededRights are policyRights, with an error for a maxReplicas that cannot be taken over: the status in mode
// Recommend has no conflict that TakeOver resolves.
func (c checker) neededRights(ctx context.Context, p *v1alpha1.AutoscalingPolicy, mode v1alpha1.Mode) []right {
	needed := policyRights(c.kube.RESTMapper(), p)
	at := slices.IndexFunc(needed, func(r right) bool {
		return r.value == valueTakeOver && r.group == cluster.FunctionMeshGroup
	})
	if at < 0 {
		return needed
	}
	if object, err := c.target(ctx, p); err == nil {
		if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "maxReplicas"); found {
			needed[at].missing = inAuto(mode)
		}
	}
	return needed
}

// scaleRight is the right to scale the objects of a resource. Any but those of the table has a role like that of
// Rollouts.
func scaleRight(group, resource string) right {
	anyResource := group == cluster.FunctionMeshGroup
	for _, r := range allRights() {
		if r.group == group && r.subresource == scaleSubresource && (anyResource || r.resource == resource) {
			r.resource = resource
			return r
		}
	}
	return right{"patch", group, resource, scaleSubresource, "", "rollouts.yaml, with this kind in it", ""}
}

// rights checks those of the adapter, in a namespace or in all.
func (c checker) rights(ctx context.Context, namespace string, rights []right) checked {
	const check = "rights"
	account := "ServiceAccount " + c.adapter.String()
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	found := checked{check, resultOK, "", account + " has the rights that are checked " + where}
	var missing, optional []string
	for _, r := range rights {
		allowed, err := c.allows(ctx, namespace, r)
		switch {
		case err != nil && namespace != "":
			return unreadable(check, "create on localsubjectaccessreviews.authorization.k8s.io in namespace "+namespace, err)
		case err != nil:
			return unreadable(check, "create on subjectaccessreviews.authorization.k8s.io", err)
		case allowed:
		case r.missing == resultOK:
			optional = append(optional, r.value)
		default:
			if r.missing == resultError || found.Result == resultOK {
				found.Result = r.missing
			}
			missing = append(missing, fmt.Sprintf("%s (%s)", r, r.fix()))
		}
	}
	if len(missing) > 0 {
		found.Message = fmt.Sprintf("%s may not %s %s; --adapter-namespace names another adapter, and -n one namespace in "+
			"which it works", account, strings.Join(missing, ", nor "), where)
	}
	if len(optional) > 0 {
		found.Message += "; values of the chart that grant more: " + strings.Join(optional, ", ")
	}
	return found
}

// allows reports whether the adapter has a right. The API server answers for all its authorizers.
func (c checker) allows(ctx context.Context, namespace string, r right) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + c.adapter.Namespace + ":" + c.adapter.Name,
		Groups: []string{
			"system:serviceaccounts", "system:serviceaccounts:" + c.adapter.Namespace, "system:authenticated",
		},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource,
		},
	}
	if namespace == "" {
		review := authorizationv1.SubjectAccessReview{Spec: spec}
		err := c.kube.Create(ctx, &review)
		return review.Status.Allowed, err
	}
	review := authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: spec}
	err := c.kube.Create(ctx, &review)
	return review.Status.Allowed, err
}
