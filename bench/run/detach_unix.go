// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package run

import (
	"os/exec"
	"syscall"
)

// detach keeps Ctrl-C from the command: it ends after the clean-up.
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
