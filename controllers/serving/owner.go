// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownerOf refers to the ClusterRole that owns what a program creates: an APIService that outlives the adapter would
// block the deletion of every namespace in the cluster. Only an object without a namespace can own objects without one,
// or of several.
func ownerOf(ctx context.Context, direct client.Client, name string) ([]metav1.OwnerReference, error) {
	if name == "" {
		return nil, nil
	}
	role := &metav1.PartialObjectMetadata{}
	kind := schema.GroupVersionKind{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"}
	role.SetGroupVersionKind(kind)
	if err := direct.Get(ctx, client.ObjectKey{Name: name}, role); err != nil {
		return nil, fmt.Errorf("reading ClusterRole %s, which owns Secrets and APIServices: %w", name, err)
	}
	return []metav1.OwnerReference{{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: role.Name, UID: role.UID,
	}}, nil
}

func owned(object metav1.Object, owners []metav1.OwnerReference) bool {
	for _, owner := range owners {
		isOwner := func(o metav1.OwnerReference) bool { return o.UID == owner.UID }
		if !slices.ContainsFunc(object.GetOwnerReferences(), isOwner) {
			return false
		}
	}
	return true
}
