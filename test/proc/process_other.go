// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proc

import "syscall"

// attributes puts the child into its own group. Only Linux has a parent-death signal: elsewhere a child outlives a
// parent that is killed with SIGKILL.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit leaves waiting to os/exec: waitid does not work for this on darwin.
func awaitExit(int) bool { return false }
