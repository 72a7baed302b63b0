// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package certificate runs two replicas of the adapter behind the real aggregator, with the permissions of deploy/rbac
// and each --serving-certificate, and replaces the authority under load.
//
// Layer 3. It only has tests. No Pulsar runs: requests for the API group's resources need none.
package certificate
