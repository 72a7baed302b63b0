// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package shared holds what all tests of one package share, such as a broker or a control plane: the first test that
// needs it starts it, and it ends with the test process.
//
// Layer 3: it knows no part itself. A package of tests declares its parts as variables and has one TestMain, which
// calls Main with them.
package shared
