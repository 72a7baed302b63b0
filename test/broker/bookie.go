// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"strings"
)

const (
	// invalidated is what Pulsar prints when its bookie takes its registration for lost. A good start does not.
	invalidated = "Lock on resource /ledgers/available/"
	// mostInvalidated before it is a loop, which prints it some 1,000 times a second.
	mostInvalidated = 3
	// mostFlaps bounds how often a broker is restarted for that.
	mostFlaps = 5
	// scannedLines of the log reach back past a start.
	scannedLines = 1000
)

// flaps says that the bookie is registered and deleted in turns. It deletes what a crash left of its registration.
// Where the notice of that comes after it has registered again, it takes the new one for lost, and so on for good: a
// processor is busy with it, and topics meet "Not enough non-faulty bookies". A stop in order leaves nothing behind.
//
// Source: Pulsar 4.0.8, seen in the logs of brokers that were killed.
func flaps(log string) bool { return strings.Count(log, invalidated) > mostInvalidated }

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
