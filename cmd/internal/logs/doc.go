// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package logs is the log of a program and of the libraries in it.
//
// Floor 3, part of the programs. It says how lines look and which are shown, and never writes one.
package logs
