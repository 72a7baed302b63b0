// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// scaleTTL is how long a scale subresource is cached. It is less than a reconcile interval, and a burst of reconciles
// makes one request.
const scaleTTL = 5 * time.Second

type scaleKey struct {
	namespace string
	ref       v1alpha1.ScaleTargetRef
}

// scales reads scale subresources from the API server.
type scales struct {
	client    client.Client
	resources cluster.ResourceLists
	// known are nil for objects that do not exist.
	known *Lookups[scaleKey, *autoscalingv1.Scale]
}

func (s *scales) find(ctx context.Context, namespace string, ref v1alpha1.ScaleTargetRef) (*plan.Target, error) {
	scale, err := s.known.Find(ctx, scaleKey{namespace, ref}, s.read)
	switch {
	case isUnsupported(err):
		return nil, err
	case err != nil:
		return newScaled(ref, ""), err
	case scale == nil:
		return nil, nil //nolint:nilnil // none is a result
	}
	target := newScaled(ref, string(scale.UID))
	replicas, reported := scale.Spec.Replicas, scale.Status.Replicas
	target.Replicas, target.Reported, target.PodSelector = &replicas, &reported, scale.Status.Selector
	return target, nil
}

func (s *scales) read(ctx context.Context, key scaleKey) (*autoscalingv1.Scale, error) {
	namespace, ref := key.namespace, key.ref
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	resource, scalable, err := s.resource(ctx, kind)
	switch {
	case meta.IsNoMatchError(err):
		return nil, unsupported("this cluster does not serve kind %s of %s: install it (the adapter notices within a "+
			"minute), or create another policy with the right scaleTargetRef", ref.Kind, ref.APIVersion)
	case err != nil:
		return nil, fmt.Errorf("looking up kind %s of %s: %w", ref.Kind, ref.APIVersion, err)
	case !scalable:
		return nil, unsupported("kind %s of %s has no scale subresource, so its replicas cannot be set: name the object "+
			"that runs the pods, such as a Deployment", ref.Kind, ref.APIVersion)
	}
	scale, err := s.scale(ctx, namespace, ref)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none is a result
	case apierrors.IsForbidden(err):
		return nil, plan.TargetProblem(v1alpha1.ReasonPermissionMissing, "%s %s may not be read: %s", ref.Kind, ref.Name,
			GrantScale(resource))
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "spec replicas field"):
		return nil, plan.TargetProblem(v1alpha1.ReasonReplicasUnset,
			"%s %s does not set its replicas, and scaling starts from them (%s): set them", ref.Kind, ref.Name, err)
	case err != nil:
		return nil, fmt.Errorf("reading the scale of %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	return scale, nil
}

// scale reads the scale subresource of an object.
func (s *scales) scale(ctx context.Context, namespace string, ref v1alpha1.ScaleTargetRef) (*autoscalingv1.Scale,
	error,
) {
	object, read := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	object.SetNamespace(namespace)
	object.SetName(ref.Name)
	read.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	if err := s.client.SubResource("scale").Get(ctx, object, read); err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, scale); err != nil {
		return nil, fmt.Errorf("decoding the scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	return scale, nil
}

// resource is the resource of a kind, and whether it has a scale subresource.
func (s *scales) resource(ctx context.Context, kind schema.GroupVersionKind) (schema.GroupResource, bool, error) {
	mapping, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupResource{}, false, err
	}
	resource := mapping.Resource.GroupResource()
	list, err := s.resources.ServerResourcesForGroupVersionWithContext(ctx, kind.GroupVersion().String())
	if err != nil {
		return resource, false, fmt.Errorf("listing the resources of %s: %w", kind.GroupVersion(), err)
	}
	scalable := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Name == resource.Resource+"/scale"
	})
	return resource, scalable, nil
}

// GrantScale says which rule lets the adapter scale the objects of a resource.
func GrantScale(resource schema.GroupResource) string {
	return fmt.Sprintf("grant the adapter get on %[1]s, and get and patch on %[1]s/scale, of API group %[2]s in a "+
		"ClusterRole, as rbac.deployments of the chart (deploy/rbac/deployments.yaml) does for Deployments",
		resource.Resource, groupName(resource.Group))
}

func groupName(group string) string {
	if group == "" {
		return `""`
	}
	return group
}

// Rewritten expires the cached scale subresource of an object after a write of its replicas.
func (f *Finder) Rewritten(namespace string, ref v1alpha1.ScaleTargetRef) {
	f.scales.known.expire(scaleKey{namespace, ref})
}
