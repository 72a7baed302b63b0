// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts the child into its own group, so that a terminal's Ctrl-C reaches only the parent, which stops the
// child gracefully, and makes the kernel kill the child when the parent is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the child has exited, and reports whether it is unreaped.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
