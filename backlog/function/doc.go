// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package function is the one model of what a Pulsar Function, Sink or Source consumes, and its three decoders:
//
//	MeshSpec       the spec of Function Mesh's Function, Sink or Source, or of an entry of a FunctionMesh
//	DecodeCommand  the command line of an instance, as in the StatefulSets of Pulsar's function worker
//	WorkerConfig   the function worker's REST answer
//
// Each decoder returns a Function; the same function described in three ways is the same Function. What its instances
// subscribe to follows from that alone: Function.Subscription. Component is the function as the worker of one cluster
// knows it, Description and Status are what that worker says of it.
//
// Floor 0: it knows package backlog and the standard library, and reads no file, no network and no clock.
package function
