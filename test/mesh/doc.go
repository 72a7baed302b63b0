// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package mesh imitates Function Mesh (github.com/streamnative/function-mesh) v0.27.2, as measured on its real
// operator: its CustomResourceDefinitions, an Operator that turns Functions, Sinks and Sources into StatefulSets and
// HPAs, and FunctionMeshes into Functions, Sinks and Sources, with its timing and its peculiarities, and Functions for
// it. It makes no Services, since pods have no address. Each pod of a Function or a Sink runs one replica of package
// replica (test/pods), and is ready when the replica consumes.
//
// Layer 3, used by the tests with real parts, by bench and by the demo. It does not decide on replicas: they follow the
// spec of the Function, as written by an HPA, a user, the product or a FunctionMesh. A FunctionMesh writes its entries
// over its children at each of their events, up to the first child that fails. Of the webhooks it has the one that
// rejects a new component with 0 replicas, as a rule of the definitions. Pods of Sources stay Pending. A Sink and a
// Function in a namespace must have different names. It knows no Go functions and no paused rollouts.
package mesh
