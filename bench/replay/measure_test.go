// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

// begun is the start of the load in all tests.
func begun() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// state is the state from a second on.
func state(seconds float64, desired, started, ready int) pods.Sample {
	at := begun().Add(time.Duration(seconds * float64(time.Second)))
	return pods.Sample{Time: at, Desired: desired, Started: started, Ready: ready}
}

func TestStartsAreFromTheScaleWriteToConsuming(t *testing.T) {
	first := []pods.Sample{state(-9, 1, 0, 0), state(-8, 1, 1, 0), state(-2, 1, 1, 1)}
	for name, test := range map[string]struct {
		timeline []pods.Sample
		starts   int
		mean     *float64
		spread   *float64
	}{
		"ignores earlier replicas": {timeline: nil},
		"one replica": {
			timeline: []pods.Sample{state(10, 2, 1, 1), state(10.1, 2, 2, 1), state(30, 2, 2, 2)},
			starts:   1, mean: known(20.0),
		},
		"several at once and one after them": {
			timeline: []pods.Sample{
				state(10, 3, 1, 1), state(20, 4, 3, 1), state(28, 4, 3, 2), state(32, 4, 4, 3),
				state(40, 4, 4, 4),
			},
			starts: 3, mean: known(20.0), spread: known(0.1),
		},
		"ignores replicas removed before their start": {
			timeline: []pods.Sample{
				state(10, 3, 3, 1), state(20, 2, 2, 1), state(25, 2, 2, 2), state(50, 3, 3, 2),
				state(65, 3, 3, 3),
			},
			starts: 2, mean: known(15.0), spread: known(0.0),
		},
		"ignores a restarted replica": {
			timeline: []pods.Sample{state(10, 1, 1, 0), state(30, 1, 1, 1)},
		},
		"scaled in": {
			timeline: []pods.Sample{state(10, 2, 2, 1), state(15, 2, 2, 2), state(30, 1, 2, 1), state(31, 1, 1, 1)},
			starts:   1, mean: known(5.0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var m measured
			m.starts(append(append([]pods.Sample{}, first...), test.timeline...), begun())
			require.Equal(t, test.starts, m.Starts)
			requireFigure(t, test.mean, m.StartSeconds)
			requireFigure(t, test.spread, m.StartSpread)
		})
	}
}

func requireFigure(t *testing.T, want, got *float64) {
	t.Helper()
	if want == nil {
		require.Nil(t, got)
		return
	}
	require.NotNil(t, got)
	require.InDelta(t, *want, *got, 1e-9)
}

// seen is a look at one replica that holds messages and has made calls.
func seen(at time.Duration, held, calls int64, busy time.Duration) look {
	return look{
		at: at, load: known(float64(at/time.Second) / 10),
		topic: &backlog.TopicSample{Partitions: []backlog.PartitionSample{
			{Subscriptions: []backlog.SubscriptionSample{{Consumers: []backlog.ConsumerSample{{
				ID:              "fn#0",
				UnackedMessages: held / 2,
			}}}}},
			{Subscriptions: []backlog.SubscriptionSample{{Consumers: []backlog.ConsumerSample{{
				ID:              "fn#0",
				UnackedMessages: held - held/2,
			}}}}},
		}},
		instances: map[string]instanceLook{"pod": {consumer: "fn#0", calls: calls, busy: busy}},
	}
}

func TestOnlyAReplicaThatHeldEnoughWasSaturated(t *testing.T) {
	const s = time.Second
	m := outcome{looks: []look{
		seen(0*s, 20, 0, 0),
		seen(5*s, 1000, 100, 2*s),    // it held 20 and did 100: it may have waited
		seen(10*s, 900, 350, 6*s),    // 50/s, busy for 4 of 5 s
		seen(15*s, 200, 600, 10*s),   // the same
		seen(20*s, 0, 790, 13*s),     // it held 200 and did 190: what is not acknowledged may be among them
		{at: 25 * s},                 // no answer
		seen(30*s, 900, 1000, 17*s),  // since when is not known
		seen(35*s, 900, 1260, 22*s),  // 52/s, busy all the time
		seen(40*s, 900, 1260, 22*s),  // stuck, or paused
		seen(45*s, 900, 10, 1*s),     // another process
		seen(50*s, 5000, 260, 195*s), // 50/s, and a busy time that cannot be is the median's to ignore
	}}.measure()
	require.Equal(t, 4, m.Saturated)
	require.InDelta(t, 50, *m.CapacityPerReplica, 1e-9)
	require.InDelta(t, 1, *m.BusyAtSaturation, 1e-9, "0.8, 0.8, 1 and too much: the upper median")
	require.Nil(t, m.CapacitySpread, "of one replica there is none")
	require.Equal(t, int64(5000), *m.PrefetchedMax)
	require.InDelta(t, 5, *m.LoadAverageMax, 1e-9)
	require.Nil(t, m.WarmUpSpeed, "it was there from the beginning")
}

func TestAReplicaThatCameLaterWarmsUp(t *testing.T) {
	const s = time.Second
	looks := []look{{at: 0}}
	calls := int64(0)
	for at := 5 * s; at <= 60*s; at += 5 * s {
		looks = append(looks, seen(at, 1000, calls, 0))
		if at < 15*s {
			calls += 125
		} else {
			calls += 250
		}
	}
	m := outcome{looks: looks}.measure()
	require.InDelta(t, 50, *m.CapacityPerReplica, 1e-9)
	require.InDelta(t, 0.5, *m.WarmUpSpeed, 1e-9)
}

func TestReplicasDifferByTheirMediansAlone(t *testing.T) {
	both := func(at time.Duration, calls, others int64) look {
		l := seen(at, 5000, calls, 0)
		l.instances["other"] = instanceLook{consumer: "fn#0", calls: others}
		return l
	}
	const s = time.Second
	m := outcome{looks: []look{
		both(0, 0, 0), both(5*s, 200, 250), both(10*s, 400, 500), both(15*s, 402, 750),
		both(20*s, 602, 1000),
	}}.measure()
	require.InDelta(t, math.Log(50.0/40)/math.Sqrt2, *m.CapacitySpread, 1e-9,
		"one was stalled once, which says nothing of its speed")
}

func TestSlackIsOfReplicasThatWaitedBesideThoseThatDidNot(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	waited := []look{seen(0, 0, 0, 0), seen(5*s, 0, 100, 100*22*ms), seen(10*s, 0, 200, 200*22*ms)}
	require.Nil(t, outcome{looks: waited}.measure().CallSlack, "there is nothing to compare with")
	both := waited
	both = append(both, seen(15*s, 1000, 200, 200*22*ms), seen(20*s, 800, 450, 200*22*ms+250*20*ms))
	require.InDelta(t, 0.1, *outcome{looks: both}.measure().CallSlack, 1e-9)
}

func TestLagIsInSecondsOfTheLoad(t *testing.T) {
	s := scenario{shape: step(40, 240, 10, 20), scale: 1, length: 30 * time.Second}
	for name, test := range map[string]struct {
		counts []counted
		want   *float64
	}{
		"there are no counts": {nil, nil},
		"all was published": {
			[]counted{{at: 5 * time.Second, published: 200}, {at: 15 * time.Second, published: 1600}},
			known(0.0),
		},
		"half a second too late": {
			[]counted{{at: 5 * time.Second, published: 180}, {at: 15 * time.Second, published: 1600}},
			known(0.5),
		},
		"later under more load": {
			[]counted{{at: 5 * time.Second, published: 180}, {at: 15 * time.Second, published: 1360}},
			known(1.0),
		},
		"more than was owed": {[]counted{{at: 5 * time.Second, published: 210}}, known(0.0)},
	} {
		t.Run(name, func(t *testing.T) {
			got := lag(s, test.counts)
			if test.want == nil {
				require.Nil(t, got)
				return
			}
			require.InDelta(t, *test.want, *got, 1e-6)
		})
	}
}

func TestDecisionsAreThoseThatDiffer(t *testing.T) {
	at := func(second int, desired int32, hold string) look {
		p := &v1alpha1.AutoscalingPolicy{}
		p.Status.DesiredReplicas = &desired
		p.Status.Decision = &v1alpha1.Decision{Equation: "1 + 1"}
		if hold != "" {
			p.Status.Decision.Hold = &v1alpha1.Hold{Reason: hold}
		}
		return look{at: time.Duration(second) * time.Second, policy: p}
	}
	undecided := look{at: time.Second, policy: &v1alpha1.AutoscalingPolicy{}}
	require.Equal(t, []decision{
		{Second: 1},
		{Second: 5, Desired: known(int32(2)), Equation: "1 + 1"},
		{Second: 20, Desired: known(int32(2)), Equation: "1 + 1", Hold: "Held"},
	}, decisions([]look{{at: 0}, undecided, at(5, 2, ""), at(10, 2, ""), {at: 15 * time.Second}, at(20, 2, "Held")}))
	require.Empty(t, decisions(nil))
}

func TestAWarmUpIsToldFromTheSpeedOfItsFirstTenSeconds(t *testing.T) {
	for _, seconds := range []float64{1, 5, 10, 20, 40} {
		done := 0.0
		for tenth := range 1000 {
			done += min(1, 0.5+0.5*(float64(tenth)+0.5)/100/seconds) / 1000
		}
		require.InDelta(t, seconds, warmUp(done), 0.01*seconds, "%g s", seconds)
	}
	require.Zero(t, warmUp(1.1))
	require.InDelta(t, 60, warmUp(0.1), 0)
}

func TestWhatWasNotSeenIsUnknown(t *testing.T) {
	m := outcome{published: 5, done: 5}.measure()
	require.Equal(t, measured{}, m)
}

func TestWhatTheBrokerAndThePolicySayInTheEnd(t *testing.T) {
	last := &backlog.TopicSample{Partitions: []backlog.PartitionSample{
		{
			PublishedMessages: 60, AddedEntries: known(int64(10)),
			Subscriptions: []backlog.SubscriptionSample{{DeliveredMessages: 70}},
		},
		{
			PublishedMessages: 40, AddedEntries: known(int64(10)),
			Subscriptions: []backlog.SubscriptionSample{{DeliveredMessages: 42}},
		},
	}}
	policy := &v1alpha1.AutoscalingPolicy{}
	policy.Status.Capacity = &v1alpha1.Capacity{
		MessagesPerSecond:   v1alpha1.NewRate(48.5),
		MeasuredBusyPercent: known(int32(97)),
	}
	m := outcome{last: last, policy: policy, published: 100, done: 100, repeated: 3}.measure()
	require.Equal(t, int64(12), *m.Redelivered)
	require.Equal(t, 3, m.Repeated)
	require.InDelta(t, 5, *m.MessagesPerEntry, 1e-9)
	require.InDelta(t, 48.5, *m.LearnedCapacity, 1e-9)
	require.InDelta(t, 0.97, *m.LearnedBusy, 1e-9)

	m = outcome{last: last, published: 100, done: 99}.measure()
	require.Nil(t, m.Redelivered, "what is not done may be on its way")
}
