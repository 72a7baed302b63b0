// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"strings"
)

const (
	// reacquired is what Pulsar prints when its bookie is registered again. After a crash it does so once: the node that
	// the crash left behind is deleted and created.
	reacquired = "Successfully re-acquired missing lock at /ledgers/available/"
	// mostReacquired of a good start; 1 is usual.
	mostReacquired = 3
	// scannedLines of the log reach back past a start.
	scannedLines = 1000
)

// flaps says that the bookie is registered and deleted in turns: on a busy machine the notice of its own deletion may
// come after the bookie has registered again, which it then takes for a loss, and so on for good. Each topic that is
// created meanwhile may meet "Not enough non-faulty bookies". A stop in order leaves no node behind, and so ends it.
//
// Source: Pulsar 4.0.8, seen in the logs of crashed brokers.
func flaps(log string) bool { return strings.Count(log, reacquired) > mostReacquired }

// explain is what the log says of the bookie, where a call failed for want of one.
func (b *Broker) explain(answer []byte) string {
	const mostLines = 30
	if !bytes.Contains(answer, []byte("non-faulty bookies")) {
		return ""
	}
	var found []string
	for line := range strings.Lines(b.LogTail(scannedLines)) {
		if strings.Contains(strings.ToLower(line), "bookie") || strings.Contains(line, "/ledgers/available") {
			found = append(found, line)
		}
	}
	return "; the broker printed:\n" + strings.Join(found[max(0, len(found)-mostLines):], "")
}
