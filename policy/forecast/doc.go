// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package forecast learns loads that return, such as those of cron jobs, and tells when the next one is expected: from
// a minute to days apart, up to three different ones in a period. It knows nothing of replicas.
//
// Layer 1. It is pure: rates and times in, expectations out.
package forecast
