// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// notStartedShare: if this share of the replicas has not started for notStartedFor, more would not start either.
	notStartedShare = 0.2
	notStartedFor   = 5 * time.Minute
	// receivedShare is less than the variation of a rate.
	receivedShare = 0.8
)

// holdUp returns the reason not to add replicas; nil for none. A flag is not believed while replicas process as much as
// they can, if blocked ones also continue to receive messages.
func holdUp(in Input, state State) *Hold {
	working := atCapacity(in, state.Capacity)
	switch {
	case in.Reading.Blocked && (!working || !receiving(in.Reading)):
		return &Hold{
			HoldBlocked, "dispatch is blocked until consumers acknowledge messages: more replicas would receive none",
		}
	case in.Reading.Throttled && !working:
		return &Hold{HoldThrottled, "a dispatch rate limit of Pulsar throttles messages: more replicas would receive no more"}
	default:
		return nil
	}
}

// atCapacity reports whether replicas process about as much as they can, by their busy time, or else by their capacity.
func atCapacity(in Input, c *LearnedCapacity) bool {
	if busy, timed := busyShare(in.Reading); timed {
		return busy >= saturatedShare*c.coverage()
	}
	processed, err := processRate(in.Reading)
	return err == nil && c != nil && processed >= max(1, in.consumers())*fullShare*c.MessagesPerSecond
}

// receiving reports whether replicas receive about as many messages as they process.
func receiving(r backlog.Reading) bool {
	delivered, err := r.DeliveryRate.Value()
	processed, unknown := processRate(r)
	return err == nil && unknown == nil && delivered > 0 && delivered >= receivedShare*processed
}

// NotStarting returns the reason that replicas do not start, so that more would not either; nil if they start or if
// that is unknown.
func NotStarting(pods *Pods, replicas int32, now time.Time) *Hold {
	if pods == nil {
		return nil
	}
	many := notStartedShare * float64(replicas)
	if float64(pods.CrashLooping) > many {
		return &Hold{HoldNotStarting, fmt.Sprintf("%d of %d replicas are in a crash loop: look at their logs",
			pods.CrashLooping, replicas)}
	}
	if since := now.Sub(pods.UnreadySince); float64(pods.Unready) > many && since > notStartedFor {
		return &Hold{HoldNotStarting, fmt.Sprintf(
			"%d of %d replicas have not started for %s: look at the events of their pods",
			pods.Unready, replicas, since.Truncate(time.Second))}
	}
	return nil
}

// holdDown returns the reason not to remove replicas; nil for none.
func holdDown(in Input, state State) *Hold {
	if age := in.Now.Sub(in.Reading.At); age > in.freshFor() {
		return &Hold{HoldStabilizing, oldReading(age, in.Reading.Trouble)}
	}
	if !in.Reading.Coverage.Complete() {
		return holdPartial(in)
	}
	if err := unknownLoad(in); err != nil {
		return &Hold{HoldUnknown, err.Error()}
	}
	if held := lasting(in, state.Contradiction); held != nil {
		return held
	}
	if s := state.Start; s.Open {
		return &Hold{HoldStabilizing, fmt.Sprintf(
			"replicas have been starting for %s", in.Now.Sub(s.Changed).Truncate(time.Second))}
	}
	if in.Pods != nil && in.Pods.Updating {
		return &Hold{HoldStabilizing, "a rollout is replacing pods"}
	}
	return nil
}

// holdPartial keeps replicas while some topics or partitions are unknown.
func holdPartial(in Input) *Hold {
	return &Hold{HoldPartial, in.Reading.Coverage.Err().Error()}
}

// worthwhile returns the least replicas that are worth a change: for at least the stabilization window no more were
// needed, and since then and the last change the replica-seconds of the others have exceeded its price. A scale-down
// that the autoscaler has not followed yet may become larger.
func worthwhile(in Input, state State, wanted int32) (target int32, held *Hold) {
	current := in.CurrentReplicas
	if ceiling := state.Plateau.Ceiling(); ceiling < current && wanted <= ceiling {
		return ceiling, nil // at once: a plateau shows when fewer replicas process as much
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
	if until, held, known := foresee(in, state).untilPulse(from, wanted, target, price); known {
		return until, held
	}
	if target > wanted {
		largest := state.Recommendations[0]
		held = &Hold{HoldStabilizing, fmt.Sprintf(
			"%d replicas are enough, %d were needed %s ago: fewer have to save %s replica-seconds first", wanted,
			largest.Replicas, in.Now.Sub(largest.At).Truncate(time.Second), short(price))}
	}
	return target, held
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

func oldReading(age time.Duration, trouble error) string {
	if trouble == nil {
		return fmt.Sprintf("the last answer from Pulsar is %s old", age.Truncate(time.Second))
	}
	return fmt.Sprintf("the last valid answer from Pulsar is %s old: %s", age.Truncate(time.Second), trouble)
}

// fromSeconds rounds down to tenths of a second, and does not overflow.
func fromSeconds(seconds float64) time.Duration {
	const most = 1e8
	return time.Duration(min(seconds, most)*10) * (time.Second / 10)
}
