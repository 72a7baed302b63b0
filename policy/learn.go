// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// LearnedCapacity is what one busy replica processes, and how sure that is: a Kalman filter on the logarithm of the
// rate, since errors of a rate are factors.
type LearnedCapacity struct {
	MessagesPerSecond float64 `json:"rate,omitempty"`
	// Variance of the logarithm: 0.01 is 10 % either way.
	Variance float64 `json:"var,omitempty"`
	// Coverage is the share of a busy replica's time that its own metric sees, from 0 to 1: the rest goes to fetching,
	// acknowledging and conversion. 0 before a replica was seen with work all the time.
	Coverage float64 `json:"cover,omitempty"`
	// Surprise is the direction of an observation that was too far off to be believed on its own: 1 up, -1 down, 0 for
	// none.
	Surprise     int8      `json:"surprise,omitempty" state:"signed"`
	Observations int32     `json:"n,omitempty"`
	LearnedAt    time.Time `json:"t,omitzero"`
}

// Tally is what a saturated pool has finished in so many seconds of one replica since it was last learned from: a few
// messages that take long say nothing of how many are done in 10 s.
type Tally struct {
	Messages       float64 `json:"m,omitempty"`
	ReplicaSeconds float64 `json:"s,omitempty"`
}

// enoughMessages to tell a rate from: their number is known to a third.
const enoughMessages = 10

const (
	// driftPerMinute is what is forgotten: 2 % in a minute, 15 % in an hour.
	driftPerMinute = 4e-4
	// Variances of one observation: of a pool with work all the time, of busy time once its coverage is known, and before.
	saturatedVariance = 0.1 * 0.1
	busyVariance      = 0.05 * 0.05
	guessedVariance   = 0.15 * 0.15
	leastGuessed      = guessedVariance / 2
	// surprise: an observation three deviations off, and the next one too, is another regime, such as new code or a slow
	// dependency; one alone is a broker or a replica that paused.
	surprise = 9
	// firstCoverage is a little below what real Java instances showed (0.98 to 0.995, calls of 1 to 20 ms); it rises
	// quickly and falls slowly, for polls that only just count as saturated would pull it down and with it what busy time
	// says of the capacity.
	firstCoverage = 0.95
	coverageRise  = 0.2
	coverageFall  = 0.02
	// saturatedShare of the coverage is as busy as a replica gets; leastBusy is enough to tell a capacity from.
	saturatedShare = 0.88
	leastBusy      = 0.1
	// leftBehind: replicas that finish less than this share of what arrives while work waits are as busy as they get,
	// whatever they show. Of calls so short that most of the time passes between them that is half and less.
	leftBehind = 0.85
	// windowsDiffer is by how much more or less instances may say to have done than Pulsar saw, less by so many deviations
	// of what independent messages make of a count too: slow functions finish few in a window.
	windowsDiffer, windowsLuck = 0.15, 2
	// waitingWork is how much of the pool's work has to wait all the time for the pool to count as busy.
	waitingWork = time.Second
)

// learning is what capacity is learned from: a reading, the time since the last one, and whether what comes out may be
// a limit behind the Function.
type learning struct {
	in      Input
	elapsed time.Duration
	frozen  bool
}

// capacity takes in a reading, and says whether the pool was saturated: every replica had work all through the window.
// The answer is known only when the same replicas were there throughout.
func (l learning) capacity(before *LearnedCapacity, tally Tally) (after *LearnedCapacity, left Tally, saturated,
	known bool,
) {
	before, r := before.drifted(l.elapsed), l.in.Reading
	processed, consumers, known := working(r)
	if !known {
		return before, Tally{}, false, false
	}
	busy, timed := busyShare(r)
	timed = timed && !l.in.without(PartBusyTime)
	opened := consumers * float64(l.in.perReplica())
	saturated = (!timed || asBusyAsItGets(before, r, busy)) && alwaysWaiting(r, processed, opened, timed)
	switch {
	case l.frozen:
		return before, Tally{}, saturated, true
	case saturated:
		tally = tally.plus(processed, consumers, max(l.elapsed, r.Window), l.elapsed)
		if tally.Messages < enoughMessages {
			return before, tally, true, true
		}
		after = before.observe(tally.Messages/tally.ReplicaSeconds, max(saturatedVariance, 1/tally.Messages), l.in.Now)
		if timed {
			after.Coverage = cover(before, r, busy)
		}
		return after, Tally{}, true, true
	case timed && busy > leastBusy && processed > 0 && sameWindow(r, processed, consumers):
		luck := 1 / max(1, processed*r.Window.Seconds())
		return before.observeBusy(before.coverage()*processed/(consumers*busy), luck, l.in.Now), Tally{}, false, true
	default:
		return before, Tally{}, false, true
	}
}

// asBusyAsItGets says that replicas that are this busy have work all the time.
func asBusyAsItGets(before *LearnedCapacity, r backlog.Reading, busy float64) bool {
	return busy >= saturatedShare*before.coverage() || (before.uncovered() && busy > leastBusy && fallsBehind(r))
}

// plus is the tally with what was finished since, at first over all of the rate's window.
func (t Tally) plus(processed, consumers float64, first, elapsed time.Duration) Tally {
	seconds := elapsed.Seconds()
	if t.ReplicaSeconds == 0 {
		seconds = first.Seconds()
	}
	return Tally{Messages: t.Messages + processed*seconds, ReplicaSeconds: t.ReplicaSeconds + consumers*seconds}
}

// drifted is what is still known after a time without an observation, which is never less than what a status tells.
func (c *LearnedCapacity) drifted(elapsed time.Duration) *LearnedCapacity {
	if c == nil {
		return nil
	}
	after := *c
	after.Variance = min(c.Variance+driftPerMinute*max(0, elapsed.Minutes()), max(c.Variance, resumedVariance))
	return &after
}

// working is what so many consumers finish, where the same ones were there throughout and nothing held messages back.
func working(r backlog.Reading) (processed, consumers float64, known bool) {
	processed, err := processRate(r)
	if err != nil || processed < 0 || !r.SteadyConsumers || r.Blocked || r.Throttled {
		return 0, 0, false
	}
	consumers, err = r.Consumers.Value()
	return processed, consumers, err == nil && consumers >= 1
}

// sameWindow says that Pulsar saw as much done as the instances say they did in the time that they were busy. After a
// step they are asked about different times: the rate of one with the busy time of the other made 20/s of 47/s when the
// load fell, and 65/s of 40/s when it rose. Fewer successes than Pulsar saw done may be failures, or those of instances
// that did not answer.
func sameWindow(r backlog.Reading, processed, consumers float64) bool {
	theirs, err := r.Instances.ProcessRate.Value()
	if err != nil {
		return true
	}
	answering, err := r.Instances.Answering.Value()
	user, noUser := r.Instances.UserExceptionRate.Value()
	system, noSystem := r.Instances.SystemExceptionRate.Value()
	if err != nil || noUser != nil || noSystem != nil || answering < consumers {
		return theirs <= (1+windowsDiffer)*processed
	}
	luck := windowsLuck * math.Sqrt(processed/max(1, r.Window.Seconds()))
	return theirs <= (1+windowsDiffer)*processed && theirs+user+system >= (1-windowsDiffer)*processed-luck
}

// processRate is what replicas finish. Of a Failover subscription Pulsar counts what they were sent, which is more
// while they fill their receive queues.
func processRate(r backlog.Reading) (float64, error) {
	if r.Type != backlog.Failover {
		return r.ProcessRate.Value()
	}
	if rate, err := r.Instances.ProcessRate.Value(); err == nil {
		return rate, nil
	}
	return r.ProcessRate.Value()
}

// busyShare is what the instances say of their time, unless they are asynchronous: those spend none of it in the call.
func busyShare(r backlog.Reading) (busy float64, timed bool) {
	busy, err := r.Instances.Busy.Value()
	return busy, err == nil && !r.Instances.Asynchronous
}

// alwaysWaiting says that a second of the pool's work waited all through the window. Replicas that time themselves may
// have it in their receive queues; of others it has to be undispatched, or a lone one may hold it while the others
// idle. Of several on a Failover subscription one may have it all, whatever they say.
func alwaysWaiting(r backlog.Reading, processed, consumers float64, timed bool) bool {
	if r.Type == backlog.Failover && consumers > 1 {
		return false
	}
	enough := max(1, processed*waitingWork.Seconds())
	if undispatched, err := r.LeastUndispatched.Value(); err == nil && undispatched >= enough {
		return true
	}
	ready, err := r.LeastReady.Value()
	return err == nil && (timed || consumers == 1) && ready >= enough
}

// fallsBehind says that clearly less is done than arrives.
func fallsBehind(r backlog.Reading) bool {
	arriving, err := r.PublishRate.Value()
	processed, unknown := processRate(r)
	return err == nil && unknown == nil && processed < leftBehind*arriving
}

// observe returns what is known after one more observation.
func (c *LearnedCapacity) observe(messagesPerSecond, variance float64, now time.Time) *LearnedCapacity {
	messagesPerSecond = max(leastRate, messagesPerSecond)
	if c == nil {
		return &LearnedCapacity{MessagesPerSecond: messagesPerSecond, Variance: variance, Observations: 1, LearnedAt: now}
	}
	distance := math.Log(messagesPerSecond / c.MessagesPerSecond)
	prior := c.Variance
	if distance*distance > surprise*(prior+variance) {
		if direction := int8(math.Copysign(1, distance)); c.Surprise != direction {
			after := *c
			after.Surprise = direction
			return &after
		}
		prior += distance * distance / 4
	}
	gain := prior / (prior + variance)
	return &LearnedCapacity{
		MessagesPerSecond: c.MessagesPerSecond * math.Exp(gain*distance), Variance: (1 - gain) * prior,
		Coverage: c.Coverage, Observations: min(c.Observations, math.MaxInt32-1) + 1, LearnedAt: now,
	}
}

// observeBusy takes in what busy time says. Before the coverage is known all of that is wrong by the same factor, so
// more of it makes nothing surer.
func (c *LearnedCapacity) observeBusy(messagesPerSecond, luck float64, now time.Time) *LearnedCapacity {
	if c != nil && c.Coverage > 0 {
		return c.observe(messagesPerSecond, max(busyVariance, luck), now)
	}
	after := c.observe(messagesPerSecond, max(guessedVariance, luck), now)
	after.Variance = max(after.Variance, leastGuessed)
	return after
}

// coverage that was learned, or what to begin with.
func (c *LearnedCapacity) coverage() float64 {
	if c.uncovered() {
		return firstCoverage
	}
	return c.Coverage
}

// uncovered says that no replica was seen with work all the time.
func (c *LearnedCapacity) uncovered() bool { return c == nil || c.Coverage == 0 }

// cautious is the capacity as far down as it may be overestimated by one deviation.
func (c *LearnedCapacity) cautious(in Input) float64 {
	if in.without(PartCautiousDown) {
		return c.MessagesPerSecond
	}
	return c.MessagesPerSecond * math.Exp(-math.Sqrt(c.Variance))
}

// cover is the coverage after a saturated pool was this busy. The first one that is clear tells more than what others
// show.
func cover(before *LearnedCapacity, r backlog.Reading, busy float64) float64 {
	coverage, weight := before.coverage(), coverageFall
	switch {
	case before.uncovered() && (busy > coverage || fallsBehind(r)):
		weight = 1
	case before.uncovered() || busy > coverage:
		weight = coverageRise
	}
	return min(1, coverage+weight*(busy-coverage))
}

// UncertaintyPercent is one deviation, at least 1.
func (c *LearnedCapacity) UncertaintyPercent() *int32 {
	most := 1000.0
	rounded := int32(min(most, max(1, math.Round(percent*math.Sqrt(c.Variance)))))
	return &rounded
}
