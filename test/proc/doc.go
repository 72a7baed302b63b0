// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package proc keeps one child process well: etcd, an API server, a broker or a function instance that a test, the demo
// or a benchmark needs for real.
//
// Floor 3, used by other packages of test, by bench and by the demo. It promises that a child never outlives its
// parent: not after Ctrl-C, a panic, a test timeout or a SIGKILL of the parent (Linux; on other systems everything but
// the SIGKILL), and not after a start that failed half way.
//
// It never restarts a child, never reads what a child prints except for LogTail, and never touches a process that it
// did not start.
package proc
