// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
)

// Part is a set of parts of the algorithm that can be left out, one bit each.
type Part uint32

// The parts, in the order of their names below.
const (
	PartBusyTime Part = 1 << iota
	PartTrend
	PartHeadroom
	PartLazyUp
	PartLeastDown
	PartCautiousDown
	PartPatientDown
	PartRecurrence
	PartPlateau
	PartFailover
	PartFloor
	PartExceptions
	PartStart
	PartRestarts
	PartKeyShared
	PartPods
)

// PartNames are the names that ParsePart knows.
func PartNames() []string {
	return []string{
		"busy-time", "trend", "headroom", "lazy-up", "least-down", "cautious-down", "patient-down", "recurrence",
		"plateau", "failover", "floor", "exceptions",
		"start", "restarts", "key-shared", "pods",
	}
}

// ParsePart returns the part of a name.
func ParsePart(name string) (Part, error) {
	for i, known := range PartNames() {
		if name == known {
			return 1 << i, nil
		}
	}
	return 0, fmt.Errorf("%q is no part of the algorithm: use one of %s", name, strings.Join(PartNames(), ", "))
}

// without reports whether a part is left out.
func (in Input) without(p Part) bool { return in.Without&p != 0 }
