// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"
)

// ServiceKey is the adapter's Service.
func (o *Options) ServiceKey(leaseNamespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(o.ServiceNamespace, leaseNamespace), Name: o.ServiceName}
}
