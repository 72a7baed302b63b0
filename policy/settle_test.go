// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// anyPlant has a constant rate, from one replica's work to that of 60, and otherwise random values. Its stabilization
// window is at least a reaction time: with a shorter one replicas are removed before added ones consume.
func anyPlant(r *rand.Rand) *plant {
	one := math.Exp(math.Log(2) + r.Float64()*math.Log(250)) // 2 to 500
	load := math.Exp(r.Float64() * math.Log(60))
	p := newPlant(1, one*load, one)
	p.in.Spec.LatencyObjective.Duration = []time.Duration{
		10 * time.Second, 30 * time.Second, time.Minute,
		5 * time.Minute,
	}[r.IntN(4)]
	window := []int32{90, 150, 300, 600}[r.IntN(4)]
	p.in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: &window}}
	p.poll, p.sync, p.start = []int{1, 10}[r.IntN(2)], r.IntN(16), 5+r.IntN(40)
	p.covered = []float64{0, 0.5, 0.9, 1}[r.IntN(4)]
	return p
}

func (p *plant) String() string {
	return fmt.Sprintf("%.4g/s at %.4g/s per replica, objective %s, window %d s, poll %d s, sync %d s, start %d s, "+
		"covered %.1f", p.rate(0), p.one,
		p.in.Spec.LatencyObjective.Duration, *p.in.Spec.Behavior.ScaleDown.StabilizationWindowSeconds, p.poll, p.sync,
		p.start, p.covered)
}

// knowing is a state that knows the capacity and the start time.
func (p *plant) knowing() *plant {
	p.state.Capacity = learned(p.one)
	p.state.Capacity.Coverage = p.covered
	p.state.Start = policy.Start{Seconds: float64(p.start), Count: 5}
	return p
}

// attempts are attempts with fewer replicas from a second on: each takes one scale-down, and one or two scale-ups.
func (p *plant) attempts(from int) (count int) {
	for _, one := range p.log {
		if one.second >= from && one.after.Capacity != nil && one.after.Capacity.Probe > 0 &&
			(one.before.Capacity == nil || one.before.Capacity.Probe == 0) {
			count++
		}
	}
	return count
}

// changes are the changes of the number of replicas, with the numbers.
func (p *plant) changes() []int32 {
	return slices.Compact(p.replicas())
}

// raises are the increases of the number of replicas from a second on.
func (p *plant) raises(from int) (count int) {
	for i := 1; i < len(p.log); i++ {
		if p.log[i].second >= from && p.log[i].in.CurrentReplicas > p.log[i-1].in.CurrentReplicas {
			count++
		}
	}
	return count
}

const (
	// steps are the most scale-downs that follow a need that falls while a backlog is drained. Each saves its price.
	steps = 8
	// attempted are the changes of one attempt: one down, up again, and without the surplus of that.
	attempted = 5
)

// Replicas rise for the load, fall when the backlog is drained, and stay.
func TestAConstantLoadIsFollowedOnce(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(21, 22))
	for range 60 {
		p := anyPlant(r).knowing().run(2400)
		require.LessOrEqual(t, p.raises(0), 1+p.attempts(0), "%v: %d", p, p.changes())
		require.LessOrEqual(t, len(p.actions(0)), steps+attempted*p.attempts(0), "%v: %d", p, p.changes())
		require.LessOrEqual(t, len(p.actions(20*60)), attempted*p.attempts(15*60), "%v: %d", p, p.changes())
		require.Less(t, p.queue, p.rate(0)*p.in.Spec.LatencyObjective.Seconds(), "%v", p)
		require.LessOrEqual(t, float64(p.in.CurrentReplicas), math.Ceil(p.rate(0)/p.one/0.7)+1, "%v: %d", p, p.changes())
	}
}

// Without a learned state there are a few more actions, which also end.
func TestAConstantLoadSettlesWithoutALearnedState(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(23, 24))
	few := 0
	for range 60 {
		p := anyPlant(r).run(2400)
		require.LessOrEqual(t, p.raises(0), 2+p.attempts(0), "%v: %d", p, p.changes())
		require.LessOrEqual(t, len(p.actions(0)), steps+attempted*p.attempts(0), "%v: %d", p, p.changes())
		require.LessOrEqual(t, len(p.actions(20*60)), attempted*p.attempts(15*60), "%v: %d", p, p.changes())
		require.Less(t, p.queue, p.rate(0)*p.in.Spec.LatencyObjective.Seconds(), "%v: %d", p, p.changes())
		if len(p.actions(0)) <= 4+3*p.attempts(0) {
			few++
		}
	}
	require.Greater(t, few, 45, "of 60")
}

// A load that falls is followed after the window, and a short dip is not.
func TestReplicasStayForAWindowAfterTheLastHigherNeed(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(25, 26))
	for range 40 {
		p := anyPlant(r).knowing()
		high, window := p.rate(0), int(*p.in.Spec.Behavior.ScaleDown.StabilizationWindowSeconds)
		dip := 1800 + r.IntN(60)
		end := dip + window + 900
		p.rate = func(second int) float64 {
			if (second >= dip && second < dip+window-2*p.poll) || second >= end {
				return high / 10
			}
			return high
		}
		p.in.CurrentReplicas, p.desired = int32(math.Ceil(high/p.one/0.9)), int32(math.Ceil(high/p.one/0.9))
		p.ready = make([]int, p.desired)
		p.run(end)
		require.LessOrEqual(t, len(p.actions(dip)), attempted*p.attempts(dip), "%v: %d", p, p.changes())
		p.run(window - p.poll)
		require.LessOrEqual(t, len(p.actions(dip)), attempted*p.attempts(dip), "%v: %d", p, p.changes())
		p.run(1200)
		require.LessOrEqual(t, p.raises(end), p.attempts(dip), "%v: %d", p, p.changes())
		if replicas := math.Ceil(high / p.one / 0.9); replicas > 3 {
			require.Less(t, p.in.CurrentReplicas, int32(replicas), "%v: %d", p, p.changes())
		}
	}
}

// A reference records the needs of every poll, and each scale-down is compared with its whole window.
func TestNoDecisionGoesBelowTheWindow(t *testing.T) {
	t.Parallel()
	downs := 0
	for seed := range uint64(60) {
		l := newLife(seed)
		window := time.Duration(*l.in.Spec.Behavior.ScaleDown.StabilizationWindowSeconds) * time.Second
		var needed []policy.ReplicasAt
		largest := func(all []policy.ReplicasAt, now time.Time, window time.Duration) (most int32) {
			for _, r := range all {
				if now.Sub(r.At) < window {
					most = max(most, r.Replicas)
				}
			}
			return most
		}
		for range 300 {
			in := l.next()
			before := l.state
			var decision policy.Decision
			decision, l.state = policy.Decide(in, before)
			needed = append(needed, l.state.Recommendations[len(l.state.Recommendations)-1])
			underCeiling := l.state.Plateau.Ceiling() > 0 && l.state.Plateau.Ceiling() < in.CurrentReplicas
			if decision.Replicas < min(in.CurrentReplicas, in.Spec.MaxReplicas) && !underCeiling {
				downs++
				require.GreaterOrEqual(t, decision.Replicas, min(in.Spec.MaxReplicas, largest(needed, in.Now, window)),
					"seed %d, %+v", seed, decision)
			}
			l.in.CurrentReplicas = decision.Replicas
		}
	}
	require.Greater(t, downs, 100)
}
