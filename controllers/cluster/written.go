// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsNewer reports whether what the API server answered to a write of an object is newer than the object in the cache,
// because its watch is late.
func IsNewer(written, cached client.Object) bool {
	if written.GetUID() != cached.GetUID() {
		return false // recreated meanwhile
	}
	order, err := resourceversion.CompareResourceVersion(written.GetResourceVersion(), cached.GetResourceVersion())
	return err == nil && order > 0
}
