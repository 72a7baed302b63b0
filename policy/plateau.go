// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"time"
)

// Plateau watches whether more replicas do more. A pool that waits for something with a limit of its own, such as a
// database, looks like one that is too small: busy, with work waiting. Adding replicas tells the two apart.
//
//	scale-up of a saturated pool -> episode -> the new replicas add what one can do: verified, or they do not: ceiling
//	ceiling -> fewer do less after all: false alarm | more comes out, or nothing waits: lifted | a probe once in a while
type Plateau struct {
	// Episode since a scale-up: what From replicas did before, and what each was believed to be able to.
	Open bool    `json:"open,omitempty"`
	From float64 `json:"from,omitempty"`
	Did  float64 `json:"did,omitempty"`
	Each float64 `json:"each,omitempty"`
	// Asked is what was asked for when it opened.
	Asked int32 `json:"asked,omitempty"`
	// Good and Bad polls in a row of a pool that has all its replicas.
	Good int `json:"good,omitempty"`
	Bad  int `json:"bad,omitempty"`
	// Ceiling of replicas, 0 for none; what came out of how many when it was set, and since when it holds.
	Ceiling int32     `json:"ceiling,omitempty"`
	Before  float64   `json:"before,omitempty"`
	BeforeN float64   `json:"beforeN,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Block is how long until the next probe, Checked the polls of this stage, Probing whether it is a probe.
	Block   time.Duration `json:"block,omitempty"`
	Checked int           `json:"checked,omitempty"`
	Probing bool          `json:"probing,omitempty"`
	// Quiet is until when nothing is concluded, after a false alarm.
	Quiet time.Time `json:"quiet,omitzero" state:"until"`
}

const (
	// verifiedGain is the share of what new replicas should add that verifies them.
	verifiedGain = 0.5
	goodPolls    = 2
	// slowedDown is the share of what came out before below which the replicas themselves became slower.
	slowedDown = 0.85
	// unverifiedGrowth is how far replicas may grow beyond what was asked for first until it is known whether that helps.
	unverifiedGrowth = 2
	badPolls         = 3
	// tellingShare of new replicas is the least whose effect stands out from the noise of a rate.
	tellingShare = 1.15
	// packed is how full replicas under a ceiling are.
	packed = 0.9
	// lifted is the change of what comes out that ends a ceiling.
	lifted       = 1.08
	probeStep    = 1.25
	firstBlock   = 10 * time.Minute
	longestBlock = time.Hour
	falseAlarm   = 30 * time.Minute
)

// active says that the capacity is not to be learned now: what comes out may be somebody else's limit.
func (p Plateau) active() bool { return p.Open || p.Ceiling > 0 }

// begin opens an episode when a pool is scaled up. One that was not saturated is believed to be able to do what it was
// learned to, if enough replicas are added to tell.
func (p Plateau) begin(in Input, one float64, saturated bool, wanted int32) Plateau {
	processed, err := in.Reading.ProcessRate.Value()
	consumers, missing := in.Reading.Consumers.Value()
	if err != nil || missing != nil || consumers < 1 || p.active() || in.Now.Before(p.Quiet) {
		return p
	}
	if !saturated {
		if float64(wanted) < tellingShare*consumers {
			return p
		}
		processed = consumers * one
	}
	return Plateau{Open: true, From: consumers, Did: processed, Each: one, Asked: wanted, Block: p.Block, Quiet: p.Quiet}
}

// observe takes in a poll in which the same replicas were there throughout.
func (p Plateau) observe(in Input, saturated bool, asked int32) Plateau {
	processed, err := in.Reading.ProcessRate.Value()
	consumers, missing := in.Reading.Consumers.Value()
	if err != nil || missing != nil || consumers < 1 {
		return p
	}
	complete := consumers >= float64(max(in.CurrentReplicas, asked))
	switch {
	case in.without(PartPlateau):
		return Plateau{}
	case p.Ceiling > 0:
		return p.underCeiling(in, processed, consumers, saturated && complete)
	case p.Open && !saturated:
		// While none of the new ones is there it cannot be they that have it at rest: a reading tells of a whole window.
		p.Open = !complete && consumers <= p.From
	case p.Open && complete:
		return p.judge(in, processed, consumers)
	}
	return p
}

// judge what the new replicas of an episode add, beside what one of a pool with work all the time did before: a dependency
// that is slower for each is no plateau.
func (p Plateau) judge(in Input, processed, consumers float64) Plateau {
	if consumers < tellingShare*p.From {
		p.Open = false // too few to tell
		return p
	}
	if processed < slowedDown*p.Did {
		p.Open = false // more do less: each became slower, which is to be learned and helps to be many
		return p
	}
	if gain := (processed - p.Did) / ((consumers - p.From) * min(p.Each, p.Did/p.From)); gain >= verifiedGain {
		p.Good, p.Bad = p.Good+1, 0
	} else {
		p.Good, p.Bad = 0, p.Bad+1
	}
	if p.Good >= goodPolls {
		p.Open = false
	}
	if p.Bad >= badPolls {
		p.Open, p.Checked, p.Probing = false, 0, false
		p.Ceiling = max(1, replicasFor(processed/(packed*p.Each)))
		p.Before, p.BeforeN, p.Since = processed, consumers, in.Now
		p.Block = max(p.Block, firstBlock)
	}
	return p
}

func (p Plateau) underCeiling(in Input, processed, consumers float64, saturated bool) Plateau {
	ready, err := in.Reading.Ready.Value()
	switch {
	case !saturated && err == nil && ready < processed*normalBacklog.Seconds():
		return Plateau{Quiet: p.Quiet} // nothing waits: whatever the limit was, it does not bind
	case !saturated:
	case processed > lifted*p.Before:
		return Plateau{Quiet: p.Quiet}
	case p.Probing:
		if p.Checked++; p.Checked >= badPolls {
			p.Probing, p.Since = false, in.Now
			p.Ceiling = max(1, int32(math.Round(float64(p.Ceiling)/probeStep)))
			p.Block = min(longestBlock, 2*p.Block)
		}
	case in.CurrentReplicas <= p.Ceiling:
		p.Checked = min(p.Checked+1, badPolls)
		if p.Checked == badPolls && tellingShare*consumers <= p.BeforeN && processed < p.Before*(1+consumers/p.BeforeN)/2 {
			return Plateau{Quiet: in.Now.Add(falseAlarm)} // fewer replicas do less: it was no plateau
		}
		if in.Now.Sub(p.Since) > p.Block {
			p.Probing, p.Checked = true, 0
			p.Ceiling = max(p.Ceiling+1, int32(math.Ceil(float64(p.Ceiling)*probeStep)))
		}
	}
	return p
}

// limit keeps an answer below the ceiling, and lets it grow for arrivals alone while an episode is open.
func (p Plateau) limit(a answer, in Input, asked int32) answer {
	switch {
	case p.Ceiling > 0 && a.replicas > p.Ceiling:
		a.hold = &Hold{Reason: HoldIneffective, Message: fmt.Sprintf(
			"more than %d replicas process no more than %s/s: look at what the Function waits for", p.Ceiling, short(p.Before))}
		a.replicas = p.Ceiling
	case p.Open && a.replicas > max(in.CurrentReplicas, asked):
		most := max(in.CurrentReplicas, asked)
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
