// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// tide is a load with a period of half an hour, so that the same decisions recur.
type tide struct {
	now   time.Time
	in    policy.Input
	state policy.State
}

const tidePolls = 180

func (d *tide) next(poll int) policy.Input {
	const one = 25
	rate := 500 + 400*math.Sin(2*math.Pi*float64(poll)/tidePolls)
	d.now = noon().Add(time.Duration(poll) * 10 * time.Second)
	in := d.in
	in.Now = d.now
	in.Reading = reading(0, rate)
	in.Reading.At, in.Reading.SteadyConsumers = d.now, true
	in.Reading.Consumers = backlog.Known(float64(in.CurrentReplicas))
	replicas := float64(in.CurrentReplicas)
	in.Reading = timed(in.Reading, replicas, min(0.85, 0.85*rate/(one*replicas)), rate)
	return in
}

// run runs up to a poll.
func (d *tide) run(from, to int) {
	for poll := from; poll < to; poll++ {
		var decision policy.Decision
		decision, d.state = policy.Decide(d.next(poll), d.state)
		d.in.CurrentReplicas = decision.Replicas
	}
}

func TestADecisionAllocatesAsMuchAfterTenHoursAsAfterOne(t *testing.T) {
	d := &tide{in: input(10, backlog.Reading{})}
	measure := func(poll int) (allocations float64, in policy.Input) {
		in = d.next(poll)
		return testing.AllocsPerRun(100, func() { policy.Decide(in, d.state) }), in
	}
	const hour = 360
	d.run(0, hour)
	after1, in1 := measure(hour)
	listed := len(d.state.Arrivals.Past) + len(d.state.Recommendations)
	d.run(hour, 10*hour)
	after10, in10 := measure(10 * hour)
	require.Equal(t, in1.CurrentReplicas, in10.CurrentReplicas, "the same time of the tide")
	require.InDelta(t, after1, after10, 3)
	require.LessOrEqual(t, len(d.state.Arrivals.Past)+len(d.state.Recommendations), listed)
}

// bytesPerState is the memory of the states of many Functions after an hour of decisions.
func bytesPerState(functions int) float64 {
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	states := make([]policy.State, functions)
	before := heap()
	for i := range states {
		l := newLife(uint64(i))
		for range 360 {
			l.step()
		}
		states[i] = l.state
	}
	after := heap()
	runtime.KeepAlive(states)
	return float64(after-before)/float64(functions) + float64(unsafe.Sizeof(policy.State{}))
}

func TestTheStatesOfTenThousandFunctionsFitInto50Megabytes(t *testing.T) {
	require.Less(t, bytesPerState(100), 50e6/10_000)
}

// many has the most expensive inputs and states: work throughout a long window, and a Failover subscription.
func many() map[string]poll {
	l := newLife(1)
	for range 360 {
		l.step()
	}
	falling := newPlant(1, 0, 100)
	window := int32(3600)
	falling.in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: &window}}
	falling.rate = func(second int) float64 { return 90_000 - 20*float64(second) }
	falling.run(3600)
	failover := newPlant(20, 5000, 100)
	failover.change = func(_ int, in *policy.Input) { *in = partitioned(rand.New(rand.NewPCG(1, 1)), *in, 64) }
	failover.run(600)
	plateau := newPlant(5, 900, 100)
	plateau.limit = 500
	plateau.run(900)
	last := func(p *plant) poll { return p.log[len(p.log)-1] }
	return map[string]poll{
		"steady": last(newPlant(5, 400, 100).knowing().run(600)), "any": {
			in:     l.next(),
			before: l.state,
		}, "plateau": last(plateau),
		"a window of an hour, falling": last(falling), "64 partitions": last(failover),
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, one := range many() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				policy.Decide(one.in, one.before)
			}
		})
	}
}

// For any load, and with every field of a state set.
func TestADecisionAllocatesLittle(t *testing.T) {
	// The race detector adds a few allocations.
	most := map[string]float64{
		"steady": 30, "any": 40, "plateau": 40, "a window of an hour, falling": 40,
		"64 partitions": 45,
	}
	for name, one := range many() {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, testing.AllocsPerRun(100, func() { policy.Decide(one.in, one.before) }), most[name])
		})
	}
}

func BenchmarkStateAfterAnHour(b *testing.B) {
	bytes := 0.0
	for b.Loop() {
		bytes = bytesPerState(100)
	}
	b.ReportMetric(bytes, "bytes/state")
}

func BenchmarkEncode(b *testing.B) {
	l := newLife(1)
	for range 360 {
		l.step()
	}
	b.ReportAllocs()
	length := 0
	for b.Loop() {
		text, err := l.state.Encode()
		require.NoError(b, err)
		length = len(text)
	}
	b.ReportMetric(float64(length), "bytes")
}

func BenchmarkDecodeState(b *testing.B) {
	l := newLife(1)
	for range 360 {
		l.step()
	}
	text, err := l.state.Encode()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		_, err := policy.DecodeState(text, noon().AddDate(1, 0, 0))
		require.NoError(b, err)
	}
}
