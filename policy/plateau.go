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

// Plateau watches whether more replicas do more. A pool that waits for something with a limit of its own, such as a
// database, looks like one that is too small: busy, with work waiting. Adding replicas tells the two apart.
//
//	scale-up -> episode -> the new replicas add what one can do: verified, or they do not: ceiling
//	ceiling -> fewer do less after all: false alarm | more comes out, or nothing waits: lifted | a probe once in a while
//
// Nothing is concluded from one poll.
type Plateau struct {
	// Open since a scale-up at Since: From replicas did Did messages per second, each was believed to be able to do Each,
	// and Asked were asked for.
	Open  bool      `json:"open,omitempty"`
	Since time.Time `json:"since,omitzero"`
	From  float64   `json:"from,omitempty"`
	Did   float64   `json:"did,omitempty"`
	Each  float64   `json:"each,omitempty"`
	Asked int32     `json:"asked,omitempty"`
	// Good, Bad and Slow polls in a row: the new replicas add what they should, do not, or all do less than before; Sum is
	// what came out in the bad ones.
	Good int     `json:"good,omitempty"`
	Bad  int     `json:"bad,omitempty"`
	Slow int     `json:"slow,omitempty"`
	Sum  float64 `json:"sum,omitempty"`

	// Ceiling of replicas since Since, 0 for none; Before came out of BeforeN replicas when it was set.
	Ceiling int32   `json:"ceiling,omitempty"`
	Before  float64 `json:"before,omitempty"`
	BeforeN float64 `json:"beforeN,omitempty"`
	// More and Less polls in a row of clearly more and less than Before, Checked those of this stage, Probing whether the
	// stage is a probe, and Block how long until the next one.
	More    int           `json:"more,omitempty"`
	Less    int           `json:"less,omitempty"`
	Checked int           `json:"checked,omitempty"`
	Probing bool          `json:"probing,omitempty"`
	Block   time.Duration `json:"block,omitempty"`
	// Quiet is until when nothing is concluded, after a false alarm.
	Quiet time.Time `json:"quiet,omitzero" state:"until"`
}

const (
	// verifiedGain is the share of what new replicas should add that verifies them.
	verifiedGain = 0.5
	goodPolls    = 2
	badPolls     = 3
	// slowedDown is the share of what came out before below which the replicas themselves became slower.
	slowedDown = 0.85
	// unverifiedGrowth is how far replicas may grow beyond what was asked for first until it is known whether that helps:
	// the first answer saw part of a step only, and what piles up while replicas start comes on top.
	unverifiedGrowth = 4
	// tellingShare of new replicas is the least with an effect that stands out from the noise of a rate.
	tellingShare = 1.15
	// An episode judges those that are there when others have not come for so many starts, and ends after twice that.
	patientStarts = 3
	// packed is how full replicas under a ceiling are.
	packed = 0.9
	// lifted is the change of what comes out that ends a ceiling.
	lifted    = 1.08
	probeStep = 1.25
	// A wrong ceiling costs for as long as it stands: the first probe is early, and the later ones are rare.
	firstBlock   = 4 * time.Minute
	longestBlock = time.Hour
	falseAlarm   = 30 * time.Minute
)

// active says that the output may be limited by something behind the Function.
func (p Plateau) active() bool { return p.Open || p.Ceiling > 0 }

// hides says that the capacity is not to be learned now. Until the first of those that were added consumes, a pool that
// does what it did tells of itself what it told before: the episode has not begun.
func (p Plateau) hides(r backlog.Reading) bool {
	consumers, missing := r.Consumers.Value()
	processed, err := processRate(r)
	return p.Ceiling > 0 || p.Open && (missing != nil || err != nil || consumers > p.From || processed < slowedDown*p.Did)
}

// none is a plateau about which nothing is known but what went before.
func (p Plateau) none() Plateau { return Plateau{Block: p.Block, Quiet: p.Quiet} }

// begin opens an episode when a pool is scaled up. One that was not saturated is believed to be able to do what it was
// learned to, if enough replicas are added to tell.
func (p Plateau) begin(in Input, one float64, saturated bool, wanted int32) Plateau {
	did, err := processRate(in.Reading)
	consumers, missing := in.Reading.Consumers.Value()
	if err != nil || missing != nil || consumers < 1 || p.active() || in.Now.Before(p.Quiet) ||
		in.Spec.Mode == v1alpha1.ModeRecommend {
		return p
	}
	if !saturated {
		if float64(wanted) < tellingShare*consumers {
			return p
		}
		did = consumers * one
	}
	after := p.none()
	after.Open, after.Since, after.From, after.Did, after.Each, after.Asked = true, in.Now, consumers, did, one, wanted
	return after
}

// pass lets time pass: an episode ends if its replicas never all come. A ceiling that is not followed ends, too.
func (p Plateau) pass(in Input, start Start) Plateau {
	switch {
	case in.without(PartPlateau), p.active() && in.Spec.Mode == v1alpha1.ModeRecommend:
		return Plateau{}
	case p.Open && in.Now.Sub(p.Since) > 2*patience(in, start):
		return p.none()
	default:
		return p
	}
}

func patience(in Input, start Start) time.Duration {
	return fromSeconds(patientStarts * start.react(in))
}

// observe takes in a poll in which the same replicas were there throughout.
func (p Plateau) observe(in Input, state State, saturated bool) Plateau {
	processed, err := processRate(in.Reading)
	consumers, missing := in.Reading.Consumers.Value()
	if err != nil || missing != nil || consumers < 1 || !p.active() {
		return p
	}
	complete := consumers >= float64(max(in.CurrentReplicas, state.pendingRaise(in)))
	if p.Ceiling > 0 {
		return p.underCeiling(in, state.Floor, outcome{processed, consumers, saturated && complete})
	}
	telling := consumers >= tellingShare*p.From
	switch late := in.Now.Sub(p.Since) > patience(in, state.Start); {
	case !saturated && !complete && consumers <= p.From:
		return p // none of the new ones is there, so it is not they that have it at rest: a reading tells of a whole window
	case !saturated, complete && !telling: // no need, or too few to tell
		return p.none()
	case complete, late && telling:
		return p.rebase(processed, consumers, complete).judge(in, processed, consumers)
	default:
		return p.rebase(processed, consumers, complete)
	}
}

// rebase an episode if its replicas do clearly less than before it while new ones are still to come: the cause is
// older than those. What they add is to be told from there, or a Function that became slower while it was
// scaled up looks like one that waits for something.
func (p Plateau) rebase(processed, consumers float64, complete bool) Plateau {
	if !complete && processed < slowedDown*p.Did {
		p.Did, p.From, p.Good, p.Bad, p.Sum = processed, consumers, 0, 0, 0
	}
	return p
}

// judge what the new replicas of an episode add, beside what one of a pool with work all the time did before: a
// dependency that is slower for each is no plateau, and is to be learned.
func (p Plateau) judge(in Input, processed, consumers float64) Plateau {
	switch gain := (processed - p.Did) / ((consumers - p.From) * min(p.Each, p.Did/p.From)); {
	case processed < slowedDown*p.Did:
		p.Good, p.Bad, p.Sum, p.Slow = 0, 0, 0, p.Slow+1
	case gain >= verifiedGain:
		p.Good, p.Bad, p.Sum, p.Slow = p.Good+1, 0, 0, 0
	default:
		p.Good, p.Bad, p.Sum, p.Slow = 0, p.Bad+1, p.Sum+processed, 0
	}
	if p.Good >= goodPolls || p.Slow >= goodPolls {
		return p.none()
	}
	if p.Bad < badPolls {
		return p
	}
	after, mean := p.none(), p.Sum/float64(p.Bad)
	after.Ceiling = max(1, in.least(), replicasFor(mean/(packed*p.Each)))
	after.Before, after.BeforeN, after.Since, after.Block = mean, consumers, in.Now, max(p.Block, firstBlock)
	return after
}

// outcome is what so many consumers finished, and whether all of the pool had work all the time.
type outcome struct {
	processed, consumers float64
	saturated            bool
}

func (p Plateau) underCeiling(in Input, floor Floor, o outcome) Plateau {
	ready, err := in.Reading.Ready.Value()
	if !o.saturated {
		if err == nil && ready-floor.messages(in) < max(1, o.processed*normalBacklog.Seconds()) {
			return p.none() // nothing waits: whatever the limit was, it does not bind
		}
		return p
	}
	p.More, p.Less = inARow(p.More, o.processed > lifted*p.Before), inARow(p.Less, p.fewerDoLess(o))
	p.Checked = min(p.Checked+1, badPolls)
	switch {
	case p.More >= badPolls:
		return p.none()
	case p.Less >= badPolls:
		after := p.none()
		after.Quiet = in.Now.Add(falseAlarm) // it was no plateau
		return after
	case p.Probing && p.Checked >= badPolls:
		p.Probing, p.Since = false, in.Now
		p.Ceiling = max(1, in.least(), int32(math.Round(float64(p.Ceiling)/probeStep)))
		p.Block = min(longestBlock, 2*p.Block)
	case !p.Probing && in.CurrentReplicas <= p.Ceiling && in.Now.Sub(p.Since) > p.Block:
		p.Probing, p.Checked = true, 0
		p.Ceiling = max(p.Ceiling+1, int32(math.Ceil(float64(p.Ceiling)*probeStep)))
	}
	return p
}

// fewerDoLess says that clearly fewer replicas than showed the plateau do less, about in proportion.
func (p Plateau) fewerDoLess(o outcome) bool {
	return !p.Probing && tellingShare*o.consumers <= p.BeforeN && o.processed < p.Before*(1+o.consumers/p.BeforeN)/2
}

// inARow counts polls in a row.
func inARow(before int, again bool) int {
	if !again {
		return 0
	}
	return min(before+1, badPolls)
}

// limit keeps a recommendation below the ceiling, and lets it grow for arrivals alone while an episode is open.
func (p Plateau) limit(a recommendation, in Input, pending int32) recommendation {
	switch {
	case p.Ceiling > 0 && a.replicas > p.Ceiling:
		a.hold = &Hold{Reason: HoldIneffective, Message: fmt.Sprintf(
			"more than %d replicas process no more than %s/s: look at what the Function waits for", p.Ceiling, short(p.Before))}
		a.replicas = p.Ceiling
	case p.Open && a.replicas > max(in.CurrentReplicas, pending):
		most := max(in.CurrentReplicas, pending)
		if p.Bad == 0 {
			most = max(most, min(a.replicas, max(a.steady, unverifiedGrowth*p.Asked)))
		}
		if a.replicas > most {
			a.replicas = most
			a.hold = &Hold{Reason: HoldUnverified, Message: "whether the replicas added last process more is not known yet"}
		}
	}
	if p.Ceiling > 0 {
		a.steady, a.drain = min(a.steady, p.Ceiling), min(a.drain, p.Ceiling)
	}
	return a
}
