// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import "k8s.io/apimachinery/pkg/runtime/schema"

// Group and Version are Function Mesh's.
const (
	Group   = "compute.functionmesh.io"
	Version = "v1alpha1"
)

// Kinds with replicas, and the kind that consists of them.
const (
	KindFunction = "Function"
	KindSink     = "Sink"
	KindSource   = "Source"
	KindMesh     = "FunctionMesh"
)

// GroupVersion is compute.functionmesh.io/v1alpha1.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }
