// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package function models what a Pulsar Function, Sink or Source consumes. It has three decoders:
//
//	MeshSpec       the spec of Function Mesh's Function, Sink or Source, or of an entry of a FunctionMesh
//	DecodeCommand  the command line of an instance, as in the StatefulSets of Pulsar's function worker
//	WorkerConfig   the function worker's REST answer
//
// Each decoder returns a Function; three descriptions of the same function give the same Function.
// Function.Subscription returns what its instances subscribe to. Component identifies the function on the worker of one
// cluster; Description and Status are the worker's answers about it.
//
// Layer 0: it uses package backlog and the standard library, and reads no file, no network and no clock.
package function
