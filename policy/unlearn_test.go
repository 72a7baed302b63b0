// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// speedUp is code that was slow for an hour and became faster by a factor; its replicas are then busy for a share of
// their time, or have the same load as before with a share of 0.
type speedUp struct {
	covered, slow, times, busy float64
}

const hour = 3600

// used is how many seconds after the change at most one replica more runs than the faster code needs.
func (s speedUp) used(t *testing.T, forget bool) int {
	t.Helper()
	load := 15 * s.slow
	p := newPlant(1, load, s.slow)
	p.covered = s.covered
	p.run(hour)
	require.InEpsilon(t, s.slow, p.state.Capacity.MessagesPerSecond, 0.1)
	if forget {
		p.state = policy.State{}.Continue(p.in.CurrentReplicas, p.state.ReadAt)
	}
	return s.follow(p, load)
}

// follow is how many seconds after the change a plant takes.
func (s speedUp) follow(p *plant, load float64) int {
	p.one = s.slow * s.times
	rate := load
	if s.busy > 0 {
		rate = s.busy * p.one * float64(p.in.CurrentReplicas)
	}
	p.rate = func(int) float64 { return rate }
	need := int32(math.Ceil(rate/(0.93*p.one))) + 1
	for second := p.poll; second <= 6*hour; second += p.poll {
		if p.run(p.poll); p.in.CurrentReplicas <= need {
			return second
		}
	}
	return math.MaxInt
}

// Without busy time and without a backlog, only attempts with fewer replicas show it.
func TestACapacityThatIsTooLowIsUnlearned(t *testing.T) {
	t.Parallel()
	const minute = 60
	for _, covered := range []float64{0.98, 0} {
		for _, times := range []float64{2, 5, 9, 25} {
			for busy, within := range map[float64]int{0.6: 15 * minute, 0.1: 60 * minute, 0: 60 * minute} {
				t.Run(fmt.Sprintf("covered %g, %g times as fast, busy %g", covered, times, busy), func(t *testing.T) {
					t.Parallel()
					s := speedUp{covered: covered, slow: 4, times: times, busy: busy}
					fresh := s.used(t, true)
					used := s.used(t, false)
					t.Logf("used after %d s, after %d s without what was learned", used, fresh)
					require.LessOrEqual(t, used, within)
					if covered > 0 && fresh < math.MaxInt {
						require.LessOrEqual(t, used, fresh+10)
					}
				})
			}
		}
	}
}

// An attempt with too few replicas ends before a message is late, and the next pause is longer.
func TestFewerReplicasAreTriedLessAndLessOften(t *testing.T) {
	p := newPlant(10, 93, 10).knowing()
	p.covered, p.state.Capacity.Coverage = 0, 0
	p.run(6 * hour)
	require.InEpsilon(t, 10, p.state.Capacity.MessagesPerSecond, 0.1)
	require.LessOrEqual(t, p.attempts(0), 8, "%d", p.changes())
	require.GreaterOrEqual(t, p.attempts(0), 5, "%d", p.changes())
	for _, one := range p.log {
		waiting, _ := one.in.Reading.Ready.Value()
		require.Less(t, waiting/93, 30.0, "seconds of arrivals at %d s", one.second)
	}
}

// Pulsar counts messages of Failover as delivered when they are in a receive queue, which has place for 1000.
func TestMessagesInReceiveQueuesTeachNoCapacity(t *testing.T) {
	for name, kind := range map[string]backlog.SubscriptionType{
		"of Failover": backlog.Failover, "of Exclusive": backlog.Exclusive,
	} {
		t.Run(name, func(t *testing.T) {
			consumers := int32(4)
			if kind == backlog.Exclusive {
				consumers = 1
			}
			each := 16 / float64(consumers)
			in, state := input(consumers, used(float64(consumers), 0)), policy.State{
				Capacity: learned(1.25 * each), Arrivals: arrivals(16),
			}
			in.Reading.Type, in.Reading.Instances.Busy = kind, backlog.Unknown(backlog.ErrNotRequested)
			for poll := range 120 {
				burst := 0.0
				if poll == 10 || poll == 60 {
					burst = 200
				}
				in.Reading.PublishRate, in.Reading.ProcessRate = backlog.Known(16+burst), backlog.Known(16+burst)
				in.Reading.GrowthRate = backlog.Known(burst)
				if poll == 80 || poll == 81 { // a backlog expires
					in.Reading.GrowthRate = backlog.Known(-3500)
				}
				_, state = policy.Decide(in, state)
				in.Now, in.Reading.At = in.Now.Add(10*time.Second), in.Reading.At.Add(10*time.Second)
			}
			require.InEpsilon(t, 1.25*each, state.Capacity.MessagesPerSecond, 0.2)
		})
	}
}
