// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// LimitMemory keeps the garbage collector below nine tenths of the container's memory limit, unless GOMEMLIMIT is set:
// by default the heap doubles before a collection, and the kernel kills the process first.
func LimitMemory(logger *slog.Logger) {
	limit, err := memlimit.Set()
	if err != nil {
		logger.Warn("the container's memory limit is unknown: set GOMEMLIMIT if it has one", "error", err)
		return
	}
	logger.Info("memory is limited", "gomemlimit", limit)
}
