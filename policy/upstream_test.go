// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// pipeline has two Functions: the second gets what the first processes, and each replica of both processes 50
// messages/s and takes a minute to start. 40 messages/s arrive, and 400 from stepAt on.
type pipeline struct {
	first, second *plant
	// each message that the first processes makes so many of the second.
	each float64
}

const stepAt = 1200

func newPipeline(change func(in *policy.Input)) pipeline {
	p := pipeline{newPlant(1, 40, 50), newPlant(1, 0, 50), 1}
	p.first.start, p.second.start = 60, 60
	p.first.rate = func(second int) float64 {
		if second >= stepAt {
			return 400
		}
		return 40
	}
	p.second.change = func(_ int, in *policy.Input) {
		if log := p.first.log; len(log) > 0 {
			in.Upstream = log[len(log)-1].decision.Outlook
		}
		if change != nil {
			change(in)
		}
	}
	return p
}

// run runs both for a number of seconds.
func (p pipeline) run(seconds int) pipeline {
	for range seconds {
		waiting := p.first.queue + p.first.rate(p.first.second+1)
		p.first.run(1)
		sent := p.each * (waiting - p.first.queue)
		p.second.rate = func(int) float64 { return sent }
		p.second.run(1)
	}
	return p
}

// eightAt is the second at which eight replicas of the second Function were decided.
func (p pipeline) eightAt() int {
	for _, one := range p.second.log {
		if one.decision.Replicas >= 8 {
			return one.second
		}
	}
	return -1
}

func TestReplicasAreAddedWithThoseOfTheFunctionBefore(t *testing.T) {
	p := newPipeline(nil).run(stepAt + 300)
	alone := newPipeline(func(in *policy.Input) { in.Upstream = nil }).run(stepAt + 300)
	require.LessOrEqual(t, p.eightAt(), stepAt+20, "at the poll at which the first one adds its replicas")
	require.GreaterOrEqual(t, alone.eightAt(), stepAt+40)
	for _, one := range p.second.log {
		if one.second == p.eightAt() {
			require.Regexp(t, `^[4-6]\d\d/s expected / \(0.93 x .* per replica\) = `, one.decision.Equation)
		}
	}
}

func TestTheFunctionBeforeHasNoInfluence(t *testing.T) {
	for name, change := range map[string]func(in *policy.Input){
		"while it is not known": func(in *policy.Input) {
			if in.Now.Sub(noon()) < (stepAt-60)*time.Second {
				in.Upstream = nil
			}
		},
		"in mode Observe": func(in *policy.Input) {
			in.Spec.Forecast = &v1alpha1.Forecast{Mode: v1alpha1.ForecastObserve}
		},
		"after ten stages, since they may be a circle": func(in *policy.Input) {
			if in.Upstream != nil {
				longer := *in.Upstream
				longer.Stages += 10
				in.Upstream = &longer
			}
		},
		"if arrivals do not follow it": func(in *policy.Input) {
			if in.Upstream != nil && int(in.Now.Unix()/10)%2 == 0 && !in.Upstream.Rises() {
				other := *in.Upstream
				other.Processed, other.Expected = 4*other.Processed, 4*other.Processed
				in.Upstream = &other
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.GreaterOrEqual(t, newPipeline(change).run(stepAt+300).eightAt(), stepAt+40)
		})
	}
}

func TestAFunctionThatSendsTwoMessagesForEachNeedsTwiceTheReplicas(t *testing.T) {
	p := newPipeline(nil)
	p.each = 2
	p.run(stepAt + 60)
	require.LessOrEqual(t, p.eightAt(), stepAt+20)
	require.InDelta(t, 2, p.second.state.Upstream.PerMessage, 0.1)
	last := p.second.log[len(p.second.log)-1].decision
	require.GreaterOrEqual(t, last.Replicas, int32(16))
}

func TestTheOutlookIsUnknown(t *testing.T) {
	for name, change := range map[string]func(in *policy.Input){
		"without the processed rate": func(in *policy.Input) {
			in.Reading.ProcessRate = backlog.Unknown(backlog.ErrNoData)
		},
		"of a Failover subscription": func(in *policy.Input) { in.Reading.Type = backlog.Failover },
		"without a reading":          func(in *policy.Input) { in.Unknown = backlog.ErrNoData },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(1, 40, 50)
			p.change = func(_ int, in *policy.Input) { change(in) }
			p.run(300)
			require.Nil(t, p.log[len(p.log)-1].decision.Outlook)
		})
	}
}

func TestTwoFunctionsBeforeAreAddedUp(t *testing.T) {
	one := policy.Outlook{Processed: 10, Expected: 50, From: noon(), Stages: 1}
	other := policy.Outlook{Processed: 20, Expected: 20, From: noon().Add(time.Minute), Stages: 3}
	sum := policy.Outlook{Processed: 30, Expected: 70, From: noon().Add(time.Minute), Stages: 3}
	require.Equal(t, sum, one.Plus(other))
}
