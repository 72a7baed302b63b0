// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owner refers to the ClusterRole with which the APIServices are deleted: an APIService that stays behind would keep
// every namespace of the cluster from being deleted.
func (r *registrar) owner(ctx context.Context) ([]metav1.OwnerReference, error) {
	if r.config.Owner == "" {
		return nil, nil
	}
	role := &metav1.PartialObjectMetadata{}
	kind := schema.GroupVersionKind{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"}
	role.SetGroupVersionKind(kind)
	if err := r.client.Get(ctx, client.ObjectKey{Name: r.config.Owner}, role); err != nil {
		return nil, fmt.Errorf("reading ClusterRole %s, which owns the APIServices: %w", r.config.Owner, err)
	}
	return []metav1.OwnerReference{{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: role.Name, UID: role.UID,
	}}, nil
}
