// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Plateau detects whether more replicas process more. A pool with an external limit, such as a database, looks like a
// pool that is too small: it is busy and has a backlog. Adding replicas distinguishes the two.
//
//	scale-up -> episode -> throughput grows with the replicas: verified | it does not: ceiling
//	ceiling -> fewer replicas process less: false alarm | throughput grew, or no backlog: lifted | now and then: probe
//
// A single poll is never enough for a conclusion.
type Plateau struct {
	// Open is true during an episode, which begins with a scale-up at Since. Before it, From replicas processed Did
	// messages per second, and the capacity of one was Each. Asked is the requested number of replicas.
	Open  bool      `json:"open,omitempty"`
	Since time.Time `json:"since,omitzero"`
	From  float64   `json:"from,omitempty"`
	Did   float64   `json:"did,omitempty" state:"rate"`
	Each  float64   `json:"each,omitempty" state:"rate"`
	Asked int32     `json:"asked,omitempty"`
	// Good, Bad and Slow count consecutive polls: the new replicas add what they should, they do not, or all replicas
	// together process less than before. Sum is the throughput of the bad polls.
	Good int     `json:"good,omitempty"`
	Bad  int     `json:"bad,omitempty"`
	Slow int     `json:"slow,omitempty"`
	Sum  float64 `json:"sum,omitempty"`

	// Ceiling is the limit of the replicas since Since, 0 for none. When it was set, BeforeN replicas processed Before
	// messages per second.
	Ceiling int32   `json:"ceiling,omitempty"`
	Before  float64 `json:"before,omitempty" state:"rate"`
	BeforeN float64 `json:"beforeN,omitempty"`
	// More and Less count consecutive polls with clearly more and less than Before, and Checked all polls of this stage.
	// Probing is true if the stage is a probe. Block is the time until the next one.
	More    int           `json:"more,omitempty"`
	Less    int           `json:"less,omitempty"`
	Checked int           `json:"checked,omitempty"`
	Probing bool          `json:"probing,omitempty"`
	Block   time.Duration `json:"block,omitempty"`
	// Quiet is the end of the pause after a false alarm.
	Quiet time.Time `json:"quiet,omitzero" state:"until"`
}

const (
	// verifiedGain is the share of the expected gain that verifies new replicas.
	verifiedGain = 0.5
	goodPolls    = 2
	badPolls     = 3
	// slowedShare: replicas became slower themselves if all of them process less than this share of the earlier
	// throughput.
	slowedShare = 0.85
	// unverifiedGrowth limits how far replicas may grow beyond the first request before they are verified: the first
	// reading saw only a part of the load step, and the backlog grows while replicas start.
	unverifiedGrowth = 4
	// significantShare is the minimum growth of the replicas that is distinguishable from the noise of a rate.
	significantShare = 1.15
	// An episode judges the replicas that have started after episodeStarts starts, and ends after twice that time.
	episodeStarts = 3
	// fullShare is the utilization of replicas under a ceiling.
	fullShare = 0.9
	// liftedShare is the growth of the throughput that lifts a ceiling.
	liftedShare = 1.08
	probeStep   = 1.25
	// A wrong ceiling is expensive: the first probe is early, later ones are rarer. Without slack only a probe shows that
	// a limit was lifted, and one probe in 15 min costs less than slack.
	firstBlock   = 4 * time.Minute
	longestBlock = 15 * time.Minute
	falseAlarm   = 30 * time.Minute
)

// active reports whether an external limit may bound the throughput.
func (p Plateau) active() bool { return p.Open || p.Ceiling > 0 }

// blocksLearning reports whether the capacity cannot be learned now. Until the first new replica consumes, the pool
// still shows its own capacity: the episode has not begun.
func (p Plateau) blocksLearning(r backlog.Reading) bool {
	consumers, missing := r.Consumers.Value()
	processed, err := processRate(r)
	return p.Ceiling > 0 || p.Open && (missing != nil || err != nil || consumers > p.From || processed < slowedShare*p.Did)
}

// reset returns a plateau without an episode or a ceiling.
func (p Plateau) reset() Plateau { return Plateau{Block: p.Block, Quiet: p.Quiet} }

// begin opens an episode at a scale-up. For a pool that was not saturated it uses the learned capacity, if the new
// replicas are enough to show an effect.
func (p Plateau) begin(in Input, one float64, saturated bool, wanted int32) Plateau {
	did, err := processRate(in.Reading)
	consumers, missing := in.Reading.Consumers.Value()
	if err != nil || missing != nil || consumers < 1 || p.active() || in.Now.Before(p.Quiet) ||
		in.Spec.Mode == v1alpha1.ModeRecommend {
		return p
	}
	if !saturated {
		if float64(wanted) < significantShare*consumers {
			return p
		}
		did = consumers * one
	}
	after := p.reset()
	after.Open, after.Since, after.From, after.Did, after.Each, after.Asked = true, in.Now, consumers, did, one, wanted
	return after
}

// expire ends an episode that did not get all its replicas in time, and a ceiling that could not be checked. It ends
// both in mode Recommend, where no autoscaler follows the ceiling.
func (p Plateau) expire(in Input, start Start) Plateau {
	switch {
	case in.without(PartPlateau), p.active() && in.Spec.Mode == v1alpha1.ModeRecommend:
		return Plateau{}
	case p.Open && in.Now.Sub(p.Since) > 2*patience(in, start),
		p.Ceiling > 0 && in.Now.Sub(p.Since) > p.Block+longestBlock:
		return p.reset()
	default:
		return p
	}
}

func patience(in Input, start Start) time.Duration {
	return fromSeconds(episodeStarts * start.react(in))
}

// observe learns from a poll with the same consumers throughout.
func (p Plateau) observe(in Input, state State, saturated bool) Plateau {
	processed, err := processRate(in.Reading)
	consumers, missing := in.Reading.Consumers.Value()
	if err != nil || missing != nil || consumers < 1 || !p.active() {
		return p
	}
	if p.Ceiling > 0 {
		started := consumers >= max(consuming(in, state.Start), float64(state.Decided.or(0)))
		return p.evaluateCeiling(in, state.Floor, output{processed, consumers, saturated && started})
	}
	complete := consumers >= float64(max(in.CurrentReplicas, state.Decided.or(0)))
	telling := consumers >= significantShare*p.From
	switch late := in.Now.Sub(p.Since) > patience(in, state.Start); {
	case !saturated && !complete && consumers <= p.From:
		return p // no new replica consumes, so the pool is idle for another reason: a reading covers a whole window
	case !saturated, keepsUp(in, state.Arrivals, processed), complete && !telling: // no need, or too few to compare
		return p.reset()
	case complete, late && telling:
		return p.rebase(processed, consumers, complete).judge(in, processed, consumers)
	default:
		return p.rebase(processed, consumers, complete)
	}
}

// keepsUp reports whether replicas process what arrives and the backlog is in receive queues: new replicas have nothing
// to add. If there are messages to dispatch, a limit just above the arrivals is possible.
func keepsUp(in Input, arrivals *Arrivals, processed float64) bool {
	undispatched, err := in.Reading.LeastUndispatched.Value()
	return err == nil && undispatched < max(1, processed*pendingWork.Seconds()) &&
		arrivals != nil && processed >= arrivals.Fast
}

// rebase restarts an episode from its current replicas while others are still to come, if the current ones process what
// they should, or clearly less, which has an earlier cause. Otherwise a Function that becomes slower meanwhile would
// look like one with an external limit.
func (p Plateau) rebase(processed, consumers float64, complete bool) Plateau {
	if !complete && (processed < slowedShare*p.Did || consumers > p.From && p.gain(processed, consumers) >= verifiedGain) {
		p.Did, p.From, p.Good, p.Bad, p.Sum = processed, consumers, 0, 0, 0
	}
	return p
}

// gain is what the new replicas of an episode add, as a share of what the same number processed before.
func (p Plateau) gain(processed, consumers float64) float64 {
	return (processed - p.Did) / ((consumers - p.From) * min(p.Each, p.Did/p.From))
}

// judge compares what the new replicas of an episode add with the earlier throughput of each replica. A dependency that
// slows each call is no plateau: it is learned as capacity.
func (p Plateau) judge(in Input, processed, consumers float64) Plateau {
	switch {
	case processed < slowedShare*p.Did:
		p.Good, p.Bad, p.Sum, p.Slow = 0, 0, 0, p.Slow+1
	case p.gain(processed, consumers) >= verifiedGain:
		p.Good, p.Bad, p.Sum, p.Slow = p.Good+1, 0, 0, 0
	default:
		p.Good, p.Bad, p.Sum, p.Slow = 0, p.Bad+1, p.Sum+processed, 0
	}
	if p.Good >= goodPolls || p.Slow >= goodPolls {
		return p.reset()
	}
	if p.Bad < badPolls {
		return p
	}
	after, mean := p.reset(), p.Sum/float64(p.Bad)
	after.Ceiling = max(1, in.minReplicas(), replicasFor(mean/(fullShare*p.Each)))
	after.Before, after.BeforeN, after.Since, after.Block = mean, consumers, in.Now, max(p.Block, firstBlock)
	return after
}

// output is the throughput of a number of consumers, and whether all had work throughout.
type output struct {
	processed, consumers float64
	saturated            bool
}

func (p Plateau) evaluateCeiling(in Input, floor Floor, o output) Plateau {
	ready, err := in.Reading.Ready.Value()
	if p.More = consecutive(p.More, o.processed > liftedShare*p.Before); p.More >= badPolls {
		return p.reset()
	}
	if !o.saturated {
		if err == nil && ready-floor.messages(in) < max(1, o.processed*normalBacklog.Seconds()) {
			return p.reset() // no backlog: the limit does not bind
		}
		return p
	}
	p.Less = consecutive(p.Less, p.fewerDoLess(o))
	p.Checked = min(p.Checked+1, badPolls)
	switch {
	case p.Less >= badPolls:
		after := p.reset()
		after.Quiet = in.Now.Add(falseAlarm) // no plateau
		return after
	case p.Probing && p.Checked >= badPolls:
		p.Probing, p.Since = false, in.Now
		p.Ceiling = max(1, in.minReplicas(), int32(math.Round(float64(p.Ceiling)/probeStep)))
		p.Block = min(longestBlock, 2*p.Block)
	case !p.Probing && in.CurrentReplicas <= p.Ceiling && in.Now.Sub(p.Since) > p.Block:
		p.Probing, p.Checked = true, 0
		p.Ceiling = max(p.Ceiling+1, int32(math.Ceil(float64(p.Ceiling)*probeStep)))
	}
	return p
}

// fewerDoLess reports whether clearly fewer replicas process less than those at the plateau, about in proportion.
func (p Plateau) fewerDoLess(o output) bool {
	return !p.Probing && significantShare*o.consumers <= p.BeforeN && o.processed < p.Before*(1+o.consumers/p.BeforeN)/2
}

// consecutive counts polls in a row.
func consecutive(before int, again bool) int {
	if !again {
		return 0
	}
	return min(before+1, badPolls)
}

// limit keeps a recommendation below the ceiling. During an episode replicas may grow for arrivals only.
func (p Plateau) limit(a recommendation, kept int32) recommendation {
	switch {
	case p.Ceiling > 0 && a.replicas > p.Ceiling:
		a.hold = &Hold{Reason: HoldIneffective, Message: fmt.Sprintf(
			"more than %d replicas process no more than %s/s: look at what the Function waits for", p.Ceiling, short(p.Before))}
		a.replicas = p.Ceiling
	case p.Open && a.replicas > kept:
		most := kept
		if p.Bad == 0 {
			most = max(most, min(a.replicas, max(a.steady, unverifiedGrowth*p.Asked)))
		}
		if a.replicas > most {
			a.replicas = most
			a.hold = &Hold{Reason: HoldUnverified, Message: "it is unknown yet whether the last replicas added process more"}
		}
	}
	if p.Ceiling > 0 {
		a.steady, a.drain = min(a.steady, p.Ceiling), min(a.drain, p.Ceiling)
	}
	return a
}
