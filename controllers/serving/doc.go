// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package serving provides certificates: for the adapter, so that the aggregator trusts it, and for the scaler and
// KEDA, so that they trust each other. It keeps a certificate authority and a serving certificate in a Secret, which
// every replica follows, or reads files that another program renews. It makes clients trust them through the
// APIServices of the adapter, or a Secret for KEDA.
//
// Layer 2, an edge. The Lease's holder writes, or any replica of the scaler; every replica reads. An authority is
// replaced in stages, so that no request meets a certificate that its sender does not trust yet: first clients trust
// the new authority in addition to the old one, then the new one signs the serving certificate, then the old one is
// removed.
//
//	stages.go        which stage is next: pure
//	issue.go         authorities and certificates
//	keeper.go        carries out the stages, at the Lease's holder
//	files.go         follows files instead
//	apiservices.go   writes the APIServices
//	client.go        writes the Secret of KEDA, the one client of the scaler
//	owner.go         the owner of Secrets and APIServices
//	certificate.go   the serving certificate of this replica
package serving
