// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package flags is what the flags of the programs have in common: help text in sections, --version, and checks with
// messages that name flag, value and bound.
//
// Floor 3, part of the programs. It knows no flag.
package flags
