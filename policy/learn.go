// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// LearnedCapacity is the rate that one busy replica processes, and its uncertainty: a Kalman filter on the logarithm of
// the rate, since errors of a rate are factors.
type LearnedCapacity struct {
	MessagesPerSecond float64 `json:"rate"`
	// Variance of the logarithm: 0.01 is 10 % either way.
	Variance float64 `json:"var"`
	// Coverage is the share of a busy replica's time that its own metric measures, from 0 to 1; the rest is fetching,
	// acknowledging and conversion. 0 before a replica was saturated.
	Coverage float64 `json:"cover"`
	// Surprise is the direction of an outlier that needs a second one: 1 up, -1 down, 0 for none.
	Surprise     int8      `json:"surprise"`
	Observations int32     `json:"n"`
	LearnedAt    time.Time `json:"t"`
	// Probe is the capacity that an attempt with fewer replicas plans with; 0 for none. Failed counts consecutive attempts
	// that had too few replicas, up to maxFailed; -1 after an attempt that had enough.
	Probe  float64 `json:"probe"`
	Failed int8    `json:"failed"`
}

// Tally counts the processed messages since capacity was last learned from them, in saturated polls or in others. Few
// slow messages do not give a rate over 10 s, and replicas that started together finish long calls together.
type Tally struct {
	Saturated      bool    `json:"full"`
	Messages       float64 `json:"m"`
	ReplicaSeconds float64 `json:"s"`
}

// enoughMessages is the number to learn a rate from, and each replica needs one: their count is exact to a third.
const enoughMessages = 10

// fewMessages reports whether a poll is too short to compare this rate: of long calls, one or none ends within it.
func fewMessages(in Input, processed float64) bool {
	return processed*in.Reading.Window.Seconds() < enoughMessages
}

const (
	// driftPerMinute is how much of the capacity is forgotten: 2 % in a minute, 15 % in an hour.
	driftPerMinute = 4e-4
	// maxDrift is the variance after which nothing more is forgotten: 50 %.
	maxDrift = 0.5 * 0.5
	// Variances of one observation: of a saturated pool, of busy time with a known coverage, and of busy time without.
	saturatedVariance  = 0.1 * 0.1
	busyVariance       = 0.05 * 0.05
	guessedVariance    = 0.15 * 0.15
	minGuessedVariance = guessedVariance / 2
	// surprise: two consecutive observations that are three deviations off show a change, such as new code or a slow
	// dependency. A single one shows that a broker or a replica paused.
	surprise = 9
	// firstCoverage is slightly below what real Java instances showed (0.98 to 0.995, calls of 1 to 20 ms). Coverage rises
	// quickly and falls slowly, since barely saturated polls would lower it, and the capacity with it.
	firstCoverage = 0.95
	coverageRise  = 0.2
	coverageFall  = 0.02
	// saturatedShare of the coverage means a fully busy replica. minBusy is enough to learn a capacity before a replica
	// was saturated: an asynchronous replica may show less below its limit.
	saturatedShare = 0.88
	minBusy        = 0.1
	// alignedShare is more than the noise of a rate over a poll, which is up to 15 % at three deviations.
	alignedShare = 0.8
	// fallsBehindShare: replicas with a backlog that process less than this share of the arrivals are saturated, whatever
	// they report. With very short calls they report at most half of their busy time.
	fallsBehindShare = 0.85
	// pendingWork is the amount of work that is pending throughout the window of a saturated pool.
	pendingWork = time.Second
)

// learnCapacity learns from a reading and the time since the last one, unless an external limit may hide the capacity.
// It reports whether the pool was saturated: every replica had work throughout the window.
func (s State) learnCapacity(in Input, elapsed time.Duration) (after State, saturated, known bool) {
	r, before, tally := in.Reading, s.Capacity.drifted(elapsed), s.Tally
	s.Capacity, s.Tally = before, Tally{}
	now, known := steadyOutput(r)
	if !known {
		return s, false, false
	}
	busy, timed := busyShare(r)
	calls, serviceTime := timedCalls(r.Instances)
	saturated = (!timed || fullyBusy(before, r, busy)) && backlogThroughout(in, now)
	if s.Plateau.blocksLearning(r) {
		return s, saturated, true
	}
	// Calls of replicas that started together end together, so a poll has all of them or none.
	long := serviceTime > in.PollInterval.Seconds() && calls >= max(enoughMessages, now.Replicas)/2
	if (!saturated || long) && timed && serviceTime > 0 && (busy > minBusy || !before.coverageUnknown()) {
		s.Capacity = before.observeBusy(before.coverage()/serviceTime, 1/max(1, calls), in.Now)
		return s, saturated, true
	}
	tally = tally.plus(saturated, now, max(elapsed, r.Window), elapsed)
	switch {
	case tally.Messages < max(enoughMessages, now.Replicas):
		s.Tally = tally
	case !saturated:
		s.Capacity = before.disproved(tally, in.Now)
	default:
		rate := tally.Messages / tally.ReplicaSeconds
		s.Capacity = before.observe(rate, max(saturatedVariance, 1/tally.Messages), in.Now)
		if timed {
			s.Capacity.Coverage = updatedCoverage(before, r, covered(rate, serviceTime, busy))
		}
	}
	return s, saturated, true
}

// steadyOutput is what the replicas process. It is known only if the same ones consumed throughout, and neither a rate
// limit nor unacknowledged messages stopped dispatch.
func steadyOutput(r backlog.Reading) (now Output, known bool) {
	now, known = output(r)
	return now, known && now.Processed >= 0 && r.SteadyConsumers && !r.Blocked && !r.Throttled
}

// timedCalls is the number of calls that ended within the window of the instances, and their mean time in seconds; 0 if
// unknown. The window is as long as several calls.
func timedCalls(r backlog.InstancesReading) (calls, serviceTime float64) {
	serviceTime, err := r.ServiceTime.Value()
	if err != nil {
		return 0, 0
	}
	processed, _ := r.ProcessRate.LowerBound() // 0 if unknown: the observation then counts as one call
	return processed * r.Window.Seconds(), serviceTime
}

// fullyBusy reports whether replicas with this share of busy time always had work.
func fullyBusy(before *LearnedCapacity, r backlog.Reading, busy float64) bool {
	return busy >= saturatedShare*before.coverage() || (before.coverageUnknown() && busy > minBusy && fallsBehind(r))
}

// plus adds what was processed since the last reading; for the first one, over the whole rate window.
func (t Tally) plus(saturated bool, now Output, first, elapsed time.Duration) Tally {
	if t.Saturated != saturated {
		t = Tally{Saturated: saturated}
	}
	seconds := elapsed.Seconds()
	if t.ReplicaSeconds == 0 {
		seconds = first.Seconds()
	}
	t.Messages, t.ReplicaSeconds = t.Messages+now.Processed*seconds, t.ReplicaSeconds+now.Replicas*seconds
	return t
}

func (c *LearnedCapacity) drifted(elapsed time.Duration) *LearnedCapacity {
	if c == nil {
		return nil
	}
	after := *c
	after.Variance = min(c.Variance+driftPerMinute*max(0, elapsed.Minutes()), max(c.Variance, maxDrift))
	return &after
}

// receiveQueue is the number of messages that a consumer prefetches: the default of Pulsar's clients.
const receiveQueue = 1000

// processRate is the rate at which replicas finish messages. For a Failover or Exclusive subscription Pulsar counts
// dispatched messages, which are more while consumers fill their receive queues. Acknowledged ones leave the backlog.
// If more left it than fit into the receive queues, they expired or were skipped, or dispatch is as fast.
func processRate(r backlog.Reading) (float64, error) {
	if r.Type != backlog.Failover && r.Type != backlog.Exclusive {
		return r.ProcessRate.Value()
	}
	if rate, err := r.Instances.ProcessRate.Value(); err == nil {
		return rate, nil
	}
	published, err := r.PublishRate.Value()
	grown, immeasurable := r.GrowthRate.Value()
	consumers, unknown := r.Consumers.Value()
	if errors.Join(err, immeasurable, unknown) != nil || -grown*r.Window.Seconds() > receiveQueue*max(1, consumers) {
		return r.ProcessRate.Value()
	}
	return max(0, published-grown), nil
}

func output(r backlog.Reading) (now Output, known bool) {
	processed, err := processRate(r)
	consumers, missing := r.Consumers.Value()
	return Output{consumers, processed}, err == nil && missing == nil && consumers >= 1
}

// busyShare is the share of the time that instances spend in the function. Asynchronous instances do not measure it.
func busyShare(r backlog.Reading) (busy float64, timed bool) {
	busy, err := r.Instances.Busy.Value()
	return busy, err == nil && !r.Instances.Asynchronous
}

// backlogThroughout reports whether a second of the pool's work was pending throughout the window. If replicas measure
// their time, it may be in receive queues. Otherwise it must be undispatched, since one replica may hold it all. On a
// Failover subscription one of several replicas may always hold it all.
func backlogThroughout(in Input, now Output) bool {
	r, consumers := in.Reading, now.Replicas*float64(in.perReplica())
	if r.Type == backlog.Failover && consumers > 1 {
		return false
	}
	enough := max(1, now.Processed*pendingWork.Seconds())
	if undispatched, err := r.LeastUndispatched.Value(); err == nil && undispatched >= enough {
		return true
	}
	ready, err := r.LeastReady.Value()
	_, timed := busyShare(r)
	return err == nil && (timed || consumers == 1) && ready >= enough
}

// flow is the rate at which messages arrive, and that at which replicas finish them; both are 0 if one is unknown.
func flow(r backlog.Reading) (arriving, processed float64) {
	arriving, err := r.PublishRate.Value()
	processed, unknown := processRate(r)
	if err != nil || unknown != nil {
		return 0, 0
	}
	return arriving, processed
}

func fallsBehind(r backlog.Reading) bool {
	arriving, processed := flow(r)
	return processed < fallsBehindShare*arriving
}

func (c *LearnedCapacity) observe(messagesPerSecond, variance float64, now time.Time) *LearnedCapacity {
	messagesPerSecond = max(minRate, messagesPerSecond)
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
		Coverage: c.Coverage, Observations: min(c.Observations, maxInt-1) + 1, LearnedAt: now,
		Failed: max(0, c.Failed),
	}
}

// observeBusy learns from busy time. Without a known coverage all observations have the same factor as error, so more
// of them do not reduce the uncertainty.
func (c *LearnedCapacity) observeBusy(messagesPerSecond, countVariance float64, now time.Time) *LearnedCapacity {
	if c != nil && c.Coverage > 0 {
		return c.observe(messagesPerSecond, max(busyVariance, countVariance), now)
	}
	after := c.observe(messagesPerSecond, max(guessedVariance, countVariance), now)
	after.Variance = max(after.Variance, minGuessedVariance)
	return after
}

func (c *LearnedCapacity) coverage() float64 {
	if c.coverageUnknown() {
		return firstCoverage
	}
	return c.Coverage
}

func (c *LearnedCapacity) coverageUnknown() bool { return c == nil || c.Coverage == 0 }

// covered is the share of its time that a saturated replica measures: its busy share. That may be of another time, in
// which it did not consume yet, since metrics are not read when the topic is. Then it is clearly less than the rate
// times the mean time of a call, which is the same share with more noise.
func covered(rate, serviceTime, busy float64) float64 {
	if share := min(1, rate*serviceTime); busy < alignedShare*share {
		return share
	}
	return busy
}

// updatedCoverage is the coverage after a saturated pool showed this one. The first clear measurement replaces the
// estimate.
func updatedCoverage(before *LearnedCapacity, r backlog.Reading, shown float64) float64 {
	coverage, weight := before.coverage(), coverageFall
	switch {
	case before.coverageUnknown() && (shown > coverage || fallsBehind(r)):
		weight = 1
	case before.coverageUnknown() || shown > coverage:
		weight = coverageRise
	}
	return min(1, coverage+weight*(shown-coverage))
}

// UncertaintyPercent is one standard deviation in percent, at least 1.
func (c *LearnedCapacity) UncertaintyPercent() *int32 {
	most := 1000.0
	rounded := int32(min(most, max(1, math.Round(percent*math.Sqrt(c.Variance)))))
	return &rounded
}
