// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// LimitMemory has the garbage collector stay below nine tenths of the container's memory limit, unless GOMEMLIMIT says
// otherwise: else it lets the heap double before it collects, and the kernel ends the process first.
func LimitMemory(logger *slog.Logger) {
	limit, err := memlimit.Set()
	if err != nil {
		logger.Warn("the container's memory limit is unknown: set GOMEMLIMIT where it has one", "error", err)
		return
	}
	logger.Info("memory is limited", "gomemlimit", limit)
}
