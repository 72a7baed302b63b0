// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

type scales struct {
	client client.Client
	// resources lists the resources of a group and version at the API server.
	resources cluster.ResourceLists
}

// newScales reads with the connection of a manager.
func newScales(mgr manager.Manager) (target.Scales, error) {
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating a client for the discovery of kinds: %w", err)
	}
	return scales{client: mgr.GetClient(), resources: resources}, nil
}

// Scale reads the scale subresource of an object.
func (s scales) Scale(ctx context.Context, namespace string, ref v1alpha1.ScaleTargetRef) (*autoscalingv1.Scale,
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

// Resource is the resource of a kind, and whether it has a scale subresource.
func (s scales) Resource(ctx context.Context, kind schema.GroupVersionKind) (schema.GroupResource, bool, error) {
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
