// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package target finds and describes scale targets: which object a policy scales, what it consumes, where its Pulsar
// is, and what a change of its replicas would do.
//
// Floor 2, an edge: it knows packages api/v1alpha1, backlog, policy and their pure packages, controllers/cluster, and
// the Kubernetes API. It reads and never writes. Of what a function worker runs it is told by Worker, of credentials by
// CredentialKeeper.
//
//	finder.go       Finder: from the spec of a policy to its target; mesh.go, statefulset.go and worker.go for each form
//	consumer.go     targets of which the policy names the subscription; podcontroller.go and scales.go for their replicas
//	disturbances.go what a change of replicas would do beside changing their number
//	clusters.go     the admin URL of a target's Pulsar, and connection.go the plan of its credentials
//	workers.go      Workers: what function workers said last, and when they were updated
//	sharers.go      Sharers: what else consumes the same subscription, by its fields or by a policy
//	reader.go       Reader: objects from the cache, of kinds that may not be installed
//	index.go        the keys by which policies and autoscalers are found
//	transform.go    what the cache keeps of each object: what this package decodes
//	lookups.go      Lookups: what is read from the API server one by one, and remembered for a minute
//
// It has no metrics: reads from the cache cost microseconds, and client-go counts those from the API server.
package target
