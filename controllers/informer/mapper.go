// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leaseMapper knows that a Lease has a namespace. A cache of chosen namespaces asks at each read, which each reconcile
// does of the Lease, and the search of a mapper that follows discovery takes longer than the read.
type leaseMapper struct{ meta.RESTMapper }

// RESTMapping implements meta.RESTMapper.
func (m leaseMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	lease := coordinationv1.SchemeGroupVersion.WithKind("Lease")
	if kind != lease.GroupKind() || !slices.Equal(versions, []string{lease.Version}) {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	return &meta.RESTMapping{
		Resource:         coordinationv1.SchemeGroupVersion.WithResource("leases"),
		GroupVersionKind: lease, Scope: meta.RESTScopeNamespace,
	}, nil
}
