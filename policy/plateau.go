// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Plateau detects whether more replicas process more. A pool with an external limit, such as a database, looks like a
// pool that is too small: it is busy and has a backlog. Adding replicas distinguishes the two.
//
//	a scale-up -> Verifying -> each new replica adds at least half of what one did before: none
//	                        -> it adds less: Limited
//	Limited, now and then  -> Trying a quarter more -> they add nothing: Limited, for longer
//	Limited or Trying      -> more is processed, or there is no backlog, or fewer process less: none
//
// A verdict needs several polls and enough messages: of long calls, few end within a poll.
type Plateau struct {
	Stage Stage `json:"stage"`
	// Since the stage began.
	Since time.Time `json:"since"`
	// Reference is the pool before: before the scale-up of Verifying, and at the plateau of the others.
	Reference Output `json:"reference"`
	// Each is what a replica processes, in messages per second.
	Each float64 `json:"each"`
	// Replicas are those that a scale-up asked for first, and the ceiling of Limited and Trying.
	Replicas int32 `json:"replicas"`
	// Most is the largest number of replicas in Verifying, and the largest rate.
	Most Output `json:"most"`
	// Seen is the output since all replicas consume, in Polls polls. A replica shows none before its first call has ended.
	Seen Seen `json:"seen"`
	// Doubtful is true while what was seen is too little for a verdict, and looks like a plateau.
	Doubtful bool `json:"doubtful"`
	// Pause is the time until the next try.
	Pause time.Duration `json:"block"`
}

// Output is what a number of replicas processes together, in messages per second.
type Output struct {
	Replicas  float64 `json:"n"`
	Processed float64 `json:"rate"`
}

// Seen sums up the output of a stage.
type Seen struct {
	From     time.Time `json:"from"`
	Polls    int32     `json:"polls"`
	Messages float64   `json:"m"`
	Seconds  float64   `json:"s"`
}

func (s Seen) plus(in Input, now Output) (after Seen, mean Output) {
	seconds := max(in.PollInterval, learnEvery).Seconds()
	s.Polls = min(s.Polls+1, maxInt)
	s.Messages, s.Seconds = s.Messages+now.Processed*seconds, s.Seconds+seconds
	return s, Output{now.Replicas, s.Messages / s.Seconds}
}

// Stage of a Plateau; empty for none.
type Stage string

// Stages.
const (
	Verifying Stage = "verifying"
	Limited   Stage = "limited"
	Trying    Stage = "trying"
)

const (
	// verifiedGain of the expected gain verifies new replicas, in verifiedPolls polls. A plateau takes plateauPolls.
	verifiedGain                = 0.5
	verifiedPolls, plateauPolls = 2, 3
	// plateauDeviations of a count are less than the gain that a verdict misses, and than a fall of the output.
	plateauDeviations = 2
	// slowedShare: replicas became slower themselves if all of them process less than this share of what they did.
	slowedShare = 0.85
	// unverifiedGrowth of the first request at most before replicas are verified: the first reading saw only a part of the
	// load step, and the backlog grows while replicas start.
	unverifiedGrowth = 4
	// significantShare is a growth of the replicas that shows in spite of the noise of a rate.
	significantShare = 1.15
	// Verifying compares the replicas that have started after episodeStarts starts, and ends after twice that time and
	// episodeCalls calls.
	episodeStarts, episodeCalls = 3, 10
	// fullShare is the utilization of replicas under a ceiling.
	fullShare = 0.9
	// liftedShare is the growth of the throughput that lifts a ceiling.
	liftedShare = 1.08
	probeStep   = 1.25
	// The first try is early, since a wrong ceiling is expensive. Without slack only a try shows that a limit was lifted.
	firstCeiling   = 4 * time.Minute
	longestCeiling = 15 * time.Minute
)

// Ceiling is the limit of the replicas; 0 for none.
func (p Plateau) Ceiling() int32 {
	if p.Stage == Limited || p.Stage == Trying {
		return p.Replicas
	}
	return 0
}

// blocksLearning reports whether the capacity cannot be learned now. Until the first new replica consumes, the pool
// still shows its own capacity.
func (p Plateau) blocksLearning(r backlog.Reading) bool {
	now, known := output(r)
	return p.Ceiling() > 0 || p.Stage == Verifying &&
		(!known || now.Replicas > p.Reference.Replicas || now.Processed < slowedShare*p.Reference.Processed)
}

func (p Plateau) none() Plateau { return Plateau{Pause: p.Pause} }

// begin verifies a scale-up. It uses the learned capacity for a poll with few messages, and for a pool that was not
// saturated if the new replicas are enough to show an effect.
func (p Plateau) begin(in Input, each float64, saturated bool, wanted int32) Plateau {
	now, known := output(in.Reading)
	if !known || p.Stage != "" || in.Spec.Mode == v1alpha1.ModeRecommend ||
		!saturated && float64(wanted) < significantShare*now.Replicas {
		return p
	}
	if !saturated || fewMessages(in, now.Processed) {
		now.Processed = now.Replicas * each
	}
	after := p.none()
	after.Stage, after.Since, after.Each, after.Replicas = Verifying, in.Now, each, wanted
	after.Reference, after.Most = now, now
	return after
}

// expire ends a verification that did not get all its replicas in time, and a ceiling that could not be checked. It
// ends both in mode Recommend, where no autoscaler follows the ceiling.
func (p Plateau) expire(in Input, start Start) Plateau {
	age := in.Now.Sub(p.Since)
	switch {
	case p.Stage == "":
		return p
	case in.Spec.Mode == v1alpha1.ModeRecommend:
		return Plateau{}
	case p.Stage == Verifying && age > 2*patience(in, start)+episodeCalls*p.call(),
		p.Ceiling() > 0 && age > p.Pause+longestCeiling+episodeCalls*p.call():
		return p.none()
	default:
		return p
	}
}

// call is how long a call takes if a replica does one at a time.
func (p Plateau) call() time.Duration { return fromSeconds(1 / max(p.Each, minRate)) }

// observe learns from a poll with the same consumers throughout.
func (p Plateau) observe(in Input, state State, saturated bool) Plateau {
	now, known := output(in.Reading)
	if !known || p.Stage == "" {
		return p
	}
	complete := now.Replicas >= float64(max(in.CurrentReplicas, state.Decided.or(0)))
	late := in.Now.Sub(p.Since) > patience(in, state.Start)
	if p.Stage != Verifying {
		return p.check(in, state.Floor, now, saturated && (complete || late))
	}
	telling := now.Replicas >= significantShare*p.Reference.Replicas
	switch {
	case !saturated && !complete && now.Replicas <= p.Reference.Replicas:
		return p // no new replica consumes, so the pool is idle for another reason: a reading covers a whole window
	case !saturated, keepsUp(in, state.Arrivals, now.Processed), complete && !telling: // no need, or too few to compare
		return p.none()
	}
	after := p.rebase(in, now, complete)
	if !complete && (!late || !telling || after.Reference != p.Reference) {
		return after
	}
	return after.judge(in, now)
}

// slowedDown compares with the current replicas if the pool became slower: with work throughout, and no fewer replicas
// than ever, it processes less than in an earlier poll, beyond noise. A limit does not explain that. Polls in which
// replicas started show it too; messages of replicas that stopped count twice.
func (p Plateau) slowedDown(in Input) Plateau {
	now, known := output(in.Reading)
	if !known || p.Stage != Verifying || now.Replicas < p.Most.Replicas {
		return p
	}
	noise := plateauDeviations * math.Sqrt((now.Processed+p.Most.Processed)/in.Reading.Window.Seconds())
	if backlogThroughout(in, now) && now.Replicas > p.Reference.Replicas && now.Processed+noise < p.Most.Processed {
		p.Reference, p.Most, p.Seen, p.Doubtful = now, now, Seen{}, false
		return p
	}
	p.Most = Output{now.Replicas, max(now.Processed, p.Most.Processed)}
	return p
}

// rebase compares with the current replicas if they process less than before, and no new ones consume yet, or if they
// process what they should while others are still to come. Otherwise a Function that becomes slower meanwhile would
// look like one with an external limit.
func (p Plateau) rebase(in Input, now Output, complete bool) Plateau {
	if now.Replicas <= p.Reference.Replicas && now.Processed < p.Reference.Processed ||
		!complete && !fewMessages(in, now.Processed) && now.Replicas > p.Reference.Replicas && p.gain(now) >= verifiedGain {
		p.Reference, p.Seen, p.Doubtful = now, Seen{}, false
	}
	return p
}

func (p Plateau) expected() float64 {
	return min(p.Each, p.Reference.Processed/p.Reference.Replicas)
}

// gain is what the new replicas add, as a share of what the same number processed before.
func (p Plateau) gain(now Output) float64 {
	return (now.Processed - p.Reference.Processed) / ((now.Replicas - p.Reference.Replicas) * p.expected())
}

// judge compares what the new replicas add with the earlier throughput of each replica, once enough calls have ended. A
// dependency that slows each call is no plateau: it is learned as capacity.
func (p Plateau) judge(in Input, now Output) Plateau {
	if p.Seen.From.IsZero() {
		p.Seen.From = in.Now
	}
	if in.Now.Sub(p.Seen.From) < p.call() {
		return p // the first calls of the new replicas have not ended
	}
	var mean Output
	p.Seen, mean = p.Seen.plus(in, now)
	missed := verifiedGain * (now.Replicas - p.Reference.Replicas) * p.expected() * p.Seen.Seconds
	slowed := mean.Processed
	if !fewMessages(in, p.Reference.Processed) {
		slowed = min(slowed, now.Processed) // the mean may be of two capacities
	}
	good := p.gain(mean) >= verifiedGain || slowed < slowedShare*p.Reference.Processed
	p.Doubtful = !good
	switch {
	case p.Seen.Polls < verifiedPolls, missed < plateauDeviations*math.Sqrt(max(1, p.Seen.Messages)),
		!good && (p.Seen.Polls < plateauPolls || p.gain(now) >= verifiedGain && !fewMessages(in, p.Reference.Processed)):
		return p
	case good:
		return p.none()
	}
	after := p.none()
	after.Stage, after.Since, after.Each, after.Reference = Limited, in.Now, p.Each, mean
	after.Replicas = max(1, in.minReplicas(), replicasFor(mean.Processed/(fullShare*p.Each)))
	after.Pause = max(p.Pause, firstCeiling)
	return after
}

func (p Plateau) check(in Input, floor Floor, now Output, saturated bool) Plateau {
	ready, err := in.Reading.Ready.Value()
	if !saturated && err == nil && ready-floor.Messages < max(1, now.Processed*normalBacklog.Seconds()) {
		return p.none() // no backlog: the limit does not bind
	}
	if !saturated {
		return p
	}
	var mean Output
	p.Seen, mean = p.Seen.plus(in, now)
	enough := p.Seen.Polls >= plateauPolls && (liftedShare-1)*p.Seen.Messages > math.Sqrt(p.Seen.Messages)
	switch age := in.Now.Sub(p.Since); {
	case !enough:
		return p
	case mean.Processed > liftedShare*p.Reference.Processed,
		mean.Processed < slowedShare*p.Reference.Processed: // the limit is another one now, or fewer replicas do less
		return p.none()
	case p.Stage == Trying:
		p.Stage, p.Since, p.Pause = Limited, in.Now, min(longestCeiling, 2*p.Pause)
		p.Replicas = max(1, in.minReplicas(), int32(math.Round(float64(p.Replicas)/probeStep)))
	case in.CurrentReplicas <= p.Replicas && age > p.Pause:
		p.Stage, p.Since = Trying, in.Now
		p.Replicas = max(p.Replicas+1, int32(math.Ceil(float64(p.Replicas)*probeStep)))
	}
	p.Seen = Seen{}
	return p
}
