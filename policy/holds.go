// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// NotStartedShare of the pods: if more have not started for notStartedFor, further ones would not start either.
	NotStartedShare = 0.2
	notStartedFor   = 5 * time.Minute
	// receivedShare is less than the variation of a rate.
	receivedShare = 0.8
)

// trial is what became of the reasons to keep replicas from a change: those that were tried in this order and did not
// hold, and the hold; nil if none held.
type trial struct {
	passed []string
	held   *Hold
	// equation of a decision about zero, which no strategy made; empty for other decisions.
	equation string
}

// mostTried is how many reasons most decisions try at most.
const mostTried = 8

// try tries holds in order, until one has a message. A reason that is tried several times has passed with the last.
func (t trial) try(holds ...Hold) trial {
	for i, h := range holds {
		t.passed = slices.DeleteFunc(t.passed, func(reason string) bool { return reason == h.Reason })
		if h.Message != "" {
			t.held = &Hold{h.Reason, h.Message}
			return t
		}
		if !slices.ContainsFunc(holds[i+1:], func(later Hold) bool { return later.Reason == h.Reason }) {
			t.passed = append(slices.Grow(t.passed, max(0, mostTried-len(t.passed))), h.Reason)
		}
	}
	return t
}

func (h Hold) when(is bool) Hold {
	if !is {
		h.Message = ""
	}
	return h
}

func unknownBy(err error) Hold {
	if err == nil {
		return Hold{Reason: HoldUnknown}
	}
	return Hold{HoldUnknown, err.Error()}
}

// tryUp tries the reasons not to add replicas. A flag is not believed while replicas process as much as they can, if
// blocked ones also continue to receive messages.
func (t trial) tryUp(in Input, state State) trial {
	r, working := in.Reading, atCapacity(in, state.Capacity)
	blocked := Hold{HoldDispatchLimited, "dispatch is blocked until consumers acknowledge messages, so more replicas " +
		"would receive none: acknowledge messages in the function, or raise the limit of unacknowledged ones"}
	throttled := Hold{HoldDispatchLimited, "a dispatch rate limit of Pulsar throttles messages, so more replicas would " +
		"receive no more: raise the limit"}
	return t.try(blocked.when(r.Blocked && (!working || !receiving(r))), throttled.when(r.Throttled && !working),
		Hold{HoldNotStarting, NotStarting(in.Pods, in.Now)})
}

// atCapacity reports whether replicas process about as much as they can, by their busy time, or else by their capacity.
// All of them count if the number of consumers is unknown.
func atCapacity(in Input, c *LearnedCapacity) bool {
	if busy, timed := busyShare(in.Reading); timed {
		return busy >= saturatedShare*c.coverage()
	}
	consumers, unknown := in.Reading.Consumers.Value()
	if unknown != nil {
		consumers = float64(in.CurrentReplicas)
	}
	processed, err := processRate(in.Reading)
	return err == nil && c != nil && processed >= max(1, consumers)*fullShare*c.MessagesPerSecond
}

func receiving(r backlog.Reading) bool {
	delivered, err := r.DeliveryRate.Value()
	processed, unknown := processRate(r)
	return err == nil && unknown == nil && delivered > 0 && delivered >= receivedShare*processed
}

// NotStarting returns why replicas do not start, so that more would not either; empty if they start or if that is
// unknown. A StatefulSet that starts its pods in order creates none after one that does not start.
func NotStarting(pods *Pods, now time.Time) string {
	if pods == nil {
		return ""
	}
	exist := pods.Ready + pods.Unready
	many := NotStartedShare * float64(exist)
	if float64(pods.CrashLooping) > many {
		return fmt.Sprintf("%d of %d replicas are in a crash loop: look at their logs", pods.CrashLooping, exist)
	}
	if since := now.Sub(pods.UnreadySince); float64(pods.Unready) > many && since > notStartedFor {
		return fmt.Sprintf("more than a fifth of %d replicas have not started for %s: look at the events of their pods",
			exist, since.Truncate(time.Second))
	}
	return ""
}

func (t trial) tryDown(in Input, state State) trial {
	return t.try(Hold{HoldStabilizing, oldReading(in)}, unknownBy(in.Reading.Coverage.Err()),
		unknownBy(unknownLoad(in)), Hold{HoldUnknown, lasting(in, state.ContradictedAt)},
		Hold{HoldStabilizing, replacing(in, state.Start)})
}

// replacing returns why the number of replicas that consume changes by itself; empty if it does not.
func replacing(in Input, start Start) string {
	switch {
	case start.Open:
		return fmt.Sprintf("replicas have been starting for %s", in.Now.Sub(start.Changed).Truncate(time.Second))
	case in.Pods != nil && in.Pods.Updating:
		return "a rollout is replacing pods"
	default:
		return ""
	}
}

// worthwhile returns the least replicas that are worth a change: for at least the stabilization window no more were
// needed, and since then and the last change the replica-seconds of the others have exceeded its price. A scale-down
// that the autoscaler has not followed yet may become larger. The message says why it is too early for some.
func worthwhile(in Input, state State, wanted int32) (target int32, early string) {
	current := in.CurrentReplicas
	if ceiling := state.Plateau.Ceiling(); ceiling < current && wanted <= ceiling {
		return ceiling, "" // at once: a plateau shows when fewer replicas process as much
	}
	from, window := float64(state.Decided.from(current)), downWindow(in)
	price, since, unchanged := state.price(in, from), in.Now.Add(-longestWindow), in.Now.Sub(state.Decided.At)
	target = current
	for _, needed := range state.Recommendations {
		idle, least := in.Now.Sub(since), max(wanted, needed.Replicas)
		saved := (from - float64(least)) * min(idle, unchanged).Seconds()
		if least < target && idle >= window && saved >= price {
			target = least
		}
		since = needed.At
	}
	if until, early, known := foresee(in, state).untilPulse(wanted, target, price); known {
		return until, early
	}
	if target > wanted {
		largest := state.Recommendations[0]
		early = fmt.Sprintf("%d replicas are enough, %d were needed %s ago: fewer have to save %s replica-seconds first",
			wanted, largest.Replicas, in.Now.Sub(largest.At).Truncate(time.Second), short(price))
	}
	return target, early
}

const (
	// A change costs this time of all replicas, since messages and partitions move, and this time of one, since replicas
	// that are added again start first.
	changePrice, oneChangePrice = 11, 35
	// keySharedPrice in place of changePrice: keys are blocked until their former consumer is done with them.
	keySharedPrice = 30
	// streamPrice in place of changePrice: the segments of a removed Stream consumer have none for 60 s, and a merge
	// does not come back, since a lineage of segments has at most 10.
	streamPrice = 60
)

// price of a change of this target, in replica-seconds.
func (s State) price(in Input, replicas float64) float64 {
	each := float64(changePrice)
	switch {
	case s.Start.restarts(in):
		each = max(each, s.Start.seconds())
	case in.Reading.Type == backlog.KeyShared:
		each = keySharedPrice
	case in.Reading.Type == backlog.Stream:
		each = streamPrice
	}
	return each*replicas + oneChangePrice
}

// explainManualRaise names the writer of the replicas in a hold, if the stabilization window keeps them for a manual
// scale.
func (in Input) explainManualRaise(held *Hold, target int32) *Hold {
	raise, window := in.ManualRaise, downWindow(in)
	if raise == nil || held == nil || held.Reason != HoldStabilizing || target != in.CurrentReplicas ||
		target != raise.Replicas || in.Now.Sub(raise.At) >= window {
		return held
	}
	return &Hold{HoldStabilizing, fmt.Sprintf(
		"%d replicas were written by %s %s ago, and are kept for the stabilization window of %s",
		raise.Replicas, raise.By, in.Now.Sub(raise.At).Truncate(time.Second), window)}
}

func oldReading(in Input) string {
	age, trouble := in.Now.Sub(in.Reading.At), in.Reading.Trouble
	switch {
	case age <= in.freshFor():
		return ""
	case trouble == nil:
		return fmt.Sprintf("the last answer from Pulsar is %s old", age.Truncate(time.Second))
	default:
		return fmt.Sprintf("the last valid answer from Pulsar is %s old: %s", age.Truncate(time.Second), trouble)
	}
}

// fromSeconds rounds down to tenths of a second, and does not overflow.
func fromSeconds(seconds float64) time.Duration {
	const most = 1e8
	return time.Duration(min(seconds, most)*10) * (time.Second / 10)
}
