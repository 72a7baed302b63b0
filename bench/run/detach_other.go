// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package run

import "os/exec"

// detach does nothing: Ctrl-C ends the command too.
func detach(*exec.Cmd) {}
