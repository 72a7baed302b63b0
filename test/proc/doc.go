// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package proc runs one child process, such as etcd, an API server, a broker or a function instance, for a test, the
// demo or a benchmark.
//
// Layer 3, used by other packages of test, by bench and by the demo. A child never outlives its parent: not after
// Ctrl-C, a panic, a test timeout or a SIGKILL of the parent (Linux; on other systems all but the SIGKILL), and not
// after a failed start.
//
// It restarts a child only by a call of Program.Launch, reads its output only for LogTail, and touches no process that
// it did not start.
package proc
