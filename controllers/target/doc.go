// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package target finds and describes scale targets: which object a policy scales, what it consumes, where its Pulsar
// is, and what a change of its replicas would do.
//
// Layer 2, an edge: it imports api/v1alpha1, backlog and policy with their pure packages and controllers/cluster, and
// talks to the Kubernetes API. It reads and never writes. Worker reads function workers.
//
//	finder.go       Finder: from the spec of a policy to its target; mesh.go, statefulset.go and worker.go for each form
//	consumer.go     targets with spec.subscription; podcontroller.go and scales.go (any scale subresource) for replicas
//	disturbances.go side effects of a change of replicas
//	clusters.go     the admin URL of a target's Pulsar, and connection.go the plan of its credentials
//	credentials.go  Credentials: the content of the Secrets of a plan; secrets.go reads them one by one. A platform may
//	                not permit it
//	workers.go      Workers: the state of functions of a worker, and when the controller last updated them
//	reader.go       Reader: objects from the cache, of kinds that may not be installed
//	cached.go       Cached: an object of the cache, with the fields that are read; autoscaler.go: those of autoscalers
//	index.go        the keys by which the cache finds policies and autoscalers
//	transform.go    the cache transform: decodes objects once
//	lookups.go      Lookups: what is read one by one from the API server, cached for a minute
//
// It has no metrics: reads from the cache take microseconds, and client-go counts those from the API server.
package target
