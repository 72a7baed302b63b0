// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package mesh stands in for Function Mesh (github.com/streamnative/function-mesh) v0.27.2, as it was measured on its
// real operator: definitions of its kinds, an Operator that turns Functions, Sinks and Sources into StatefulSets,
// Services and HPAs, and FunctionMeshes into Functions, Sinks and Sources, with its timing and its quirks, and
// Functions to feed it. Where a cluster has a kubelet, the Operator starts one replica of package replica for each pod
// of a Function or a Sink, marks the pod Ready when the replica consumes, and keeps the account of what ran when.
//
// Floor 3, used by the tests with real parts, by bench and by the demo. It never decides how many replicas there are:
// the spec of the Function does, as written by an HPA, a person, the product or a FunctionMesh, which writes its
// entries over its children at each event of theirs, up to the first child that fails. Of the webhooks it has the one
// that refuses to create a component with 0 replicas, as a rule of the definitions. It leaves pods of Sources Pending,
// and a Sink's replicas are those of a Function, whose names must differ.
package mesh
