// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package serving is how the aggregator comes to trust the adapter, and KEDA and the scaler each other: a certificate
// authority and a serving certificate in a Secret, which every replica follows, or files that others write; and what
// has clients trust them: the APIServices of the adapter, or a Secret for KEDA.
//
// Floor 2, edge. The Lease's holder writes, or any replica of the scaler; every replica reads. An authority is replaced
// in stages, so that no request meets a certificate that its sender does not trust yet: first clients trust the new
// authority beside the old one, then the new one signs what is served, then the old one is removed.
//
//	stages.go        which stage is next: pure
//	issue.go         authorities and certificates
//	keeper.go        takes the stages, at the Lease's holder
//	files.go         follows files instead
//	apiservices.go   writes the APIServices
//	client.go        writes the Secret of KEDA, the one client of the scaler
//	owner.go         with what Secrets and APIServices are deleted
//	certificate.go   what this replica serves
package serving
