// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package flags has what the flags of the programs share: help text in sections, --version, and checks with messages
// that name flag, value and bound.
//
// Layer 3, part of the programs. It defines no flag.
package flags
