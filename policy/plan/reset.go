// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const (
	// revertedWithin is how soon after the controller undid a reset another one is a fight and no deploy: GitOps tools
	// revert within seconds where they correct drift, and repeat a sync every 3 to 10 minutes.
	revertedWithin = time.Minute
	// In a fight the controller waits for firstPause, then for pauseFactor times as long, up to longestPause: each write
	// starts replicas that the tool removes.
	firstPause, longestPause = 30 * time.Second, 10 * time.Minute
	pauseFactor              = 4
)

// resets are resets of the replicas by manifests.
type resets struct {
	// at is when the last reset was noticed, and by its writer.
	at time.Time
	by ManualScale
	// undoneAt is when the controller last undid one.
	undoneAt time.Time
	// pause is the time from the last reset until the controller undoes it.
	pause time.Duration
}

// add notes one more. One during a pause changes nothing: the controller had not written since.
func (r resets) add(m ManualScale, now time.Time) resets {
	switch {
	case r.undoneAt.Before(r.at):
		r.by = m
		return r
	case now.Sub(r.undoneAt) >= revertedWithin:
		r.pause = 0
	default:
		r.pause = min(max(firstPause, pauseFactor*r.pause), longestPause)
	}
	r.at, r.by = now, m
	return r
}

// undone notes that the controller wrote the replicas.
func (r resets) undone(now time.Time) resets {
	if r.undoneAt.Before(r.at) {
		r.undoneAt = now
	}
	return r
}

func (r resets) paused(now time.Time) bool { return now.Before(r.at.Add(r.pause)) }

// hold is that of a fight with the tool that resets the replicas; nil for none.
func (r resets) hold(now time.Time) *policy.Hold {
	if !r.paused(now) {
		return nil
	}
	return &policy.Hold{
		Reason: policy.HoldReset,
		Message: fmt.Sprintf("%s was reset within a minute after the controller had written it back, by %s: leave it out "+
			"of the manifest and have the tool ignore it, see docs/gitops.md; the controller pauses for %s before it writes it "+
			"again", r.by.Field, r.by.Writer, duration.HumanDuration(r.pause)),
	}
}
