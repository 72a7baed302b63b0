// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// worker is a synchronous instance with known true counts: it processes messages one after the other, restarts
// occasionally, and counts as its language does.
type worker struct {
	random           *rand.Rand
	now              time.Duration // since the start
	gap, call        time.Duration // means between messages and of a call
	readAhead        int64
	failuresTimed    bool
	failing          float64 // share of the calls that fail
	waiting          int64
	nextMessage      time.Duration
	callEnds         time.Duration // 0 while in none
	callBegan        time.Duration
	worked           time.Duration // truly, ever; without the present call
	processed, calls int64
	failed           int64
	busy             time.Duration
}

func (w *worker) spread(mean time.Duration) time.Duration {
	return time.Duration(float64(mean) * (0.5 + w.random.Float64()))
}

// until advances the time.
func (w *worker) until(t time.Duration) {
	for {
		next := w.nextMessage
		if w.callEnds > 0 {
			next = min(next, w.callEnds)
		}
		if next > t {
			w.now = t
			return
		}
		w.now = next
		if w.callEnds > 0 && w.now == w.callEnds {
			w.endCall()
		} else {
			w.waiting++
			w.nextMessage = w.now + max(1, w.spread(w.gap))
		}
		if w.callEnds == 0 && w.waiting > 0 {
			w.waiting--
			w.callBegan, w.callEnds = w.now, w.now+w.spread(w.call)
		}
	}
}

func (w *worker) endCall() {
	took := w.callEnds - w.callBegan
	w.worked, w.callEnds = w.worked+took, 0
	failed := w.random.Float64() < w.failing
	if failed {
		w.failed++
	} else {
		w.processed++
	}
	if !failed || w.failuresTimed {
		w.calls++
		w.busy += took
	}
}

func (w *worker) truth() time.Duration {
	if w.callEnds > 0 {
		return w.worked + w.now - w.callBegan
	}
	return w.worked
}

func (w *worker) restart() {
	if w.callEnds > 0 {
		w.worked += w.now - w.callBegan
		w.callEnds = 0
		w.waiting++ // it is delivered again
	}
	w.processed, w.calls, w.failed, w.busy = 0, 0, 0, 0
}

func (w *worker) sample() InstanceSample {
	received := w.processed + w.failed
	if w.callEnds > 0 {
		received += 1 + min(w.readAhead, w.waiting)
	}
	return runtime{id: "0", failuresTimed: w.failuresTimed}.counts(received, w.processed, w.failed, w.calls, w.busy)
}

func TestBusyIsTheShareOfTimeInCallsHoweverLongTheyAre(t *testing.T) {
	for _, call := range []time.Duration{
		20 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 7 * time.Second,
		50 * time.Second,
	} {
		for _, load := range []float64{0.1, 0.5, 0.8, 2} {
			for _, java := range []bool{true, false} {
				t.Run(fmt.Sprintf("calls of %s at load %.1f, java %t", call, load, java), func(t *testing.T) {
					w := &worker{
						random: rand.New(rand.NewPCG(uint64(call), uint64(load*10))),
						gap:    time.Duration(float64(call) / load), call: call, failuresTimed: java, failing: 0.02,
					}
					if !java {
						w.readAhead = 2
					}
					checkBusy(t, w, load)
				})
			}
		}
	}
}

func checkBusy(t *testing.T, w *worker, load float64) {
	t.Helper()
	var h instancesHistory
	var readings, sum, least, most float64 = 0, 0, 2, 0
	const looks = 4000
	var asynchronous bool
	for n := range looks {
		w.until(w.now + 4500*time.Millisecond + time.Duration(w.random.Int64N(int64(time.Second))))
		if n%300 == 299 {
			w.restart()
		}
		h.add(InstancesSample{At: midday().Add(w.now), Instances: []InstanceSample{w.sample()}}, 10*time.Second, time.Minute)
		r := h.read(Known(1))
		asynchronous = asynchronous || r.Asynchronous
		if busy, err := r.Busy.Value(); err == nil && n > 100 {
			readings, sum = readings+1, sum+busy
			least, most = min(least, busy), max(most, busy)
		}
	}
	truth := w.truth().Seconds() / w.now.Seconds()
	require.InDelta(t, truth, sum/readings, 0.025, "true on the average: the failed calls of Python are 2 % of it")
	require.GreaterOrEqual(t, least, 0.0)
	require.LessOrEqual(t, most, 1.15)
	if load > 1 {
		require.Greater(t, least, 0.75, "an instance with work throughout must always look busy")
	}
	require.False(t, asynchronous)
}

func BenchmarkInstancesRead100(b *testing.B) {
	var h instancesHistory
	for n := range 10 {
		sample := InstancesSample{At: midday().Add(time.Duration(n) * 5 * time.Second)}
		for i := range 100 {
			r := runtime{id: fmt.Sprint(i), failuresTimed: true}
			sample.Instances = append(sample.Instances,
				r.counts(int64(50*n), int64(50*n), 0, int64(50*n), time.Duration(n)*time.Second))
		}
		h.add(sample, 10*time.Second, time.Minute)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r := h.read(Known(1)); !r.Busy.Known() {
			b.Fatal("unknown")
		}
	}
}
