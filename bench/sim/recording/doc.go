// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording has loads that were recorded for days, with gaps, and the episodes of them on which controllers are
// compared.
//
// Layer 3. It draws no load: a gap is unknown, and no episode has one.
package recording
