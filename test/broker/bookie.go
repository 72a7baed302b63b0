// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"strings"
)

const (
	// invalidated is in Pulsar's log when its bookie considers its registration lost. A good start does not log it.
	invalidated = "Lock on resource /ledgers/available/"
	// mostInvalidated is the limit before a loop, which logs it some 1,000 times a second.
	mostInvalidated = 3
	// mostFlaps bounds the restarts of a broker for that.
	mostFlaps = 5
	// scannedLines of the log include a start.
	scannedLines = 1000
)

// flaps reports whether the bookie registers and deletes its registration in a loop. It deletes the old registration
// after a crash. If that event arrives after the new registration, the bookie considers the new one lost, and so on: a
// processor is busy, and topics get "Not enough non-faulty bookies". A graceful stop avoids it.
//
// Source: Pulsar 4.0.8, seen in the logs of killed brokers.
func flaps(log string) bool { return strings.Count(log, invalidated) > mostInvalidated }

// explain returns the bookie's log lines if a call failed for lack of a bookie.
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
