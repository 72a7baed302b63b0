// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runtime makes samples with the counters of one language.
type runtime struct {
	id string
	// untimed instances are sinks; failuresTimed ones Java functions.
	untimed, failuresTimed bool
}

func (r runtime) counts(received, processed, failed, calls int64, busy time.Duration) InstanceSample {
	s := InstanceSample{
		ID: r.id, Received: received, Processed: processed, UserExceptions: failed, FailedCallsCounted: r.failuresTimed,
	}
	if !r.untimed {
		s.Calls, s.BusyTime = &calls, &busy
	}
	return s
}

func readAt(second int, s InstanceSample) InstanceSample {
	s.At = midday().Add(time.Duration(second) * time.Second)
	return s
}

// look is one scrape of the instances, a number of seconds after the start.
type look struct {
	at        int
	instances []InstanceSample
	silent    int
}

func midday() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func valueOf(t *testing.T, m Measurement) float64 {
	t.Helper()
	value, err := m.Value()
	require.NoError(t, err)
	return value
}

// leastOf is the value of a lower bound.
func leastOf(t *testing.T, m Measurement) float64 {
	t.Helper()
	_, err := m.Value()
	require.ErrorIs(t, err, ErrPartial)
	value, err := m.LowerBound()
	require.NoError(t, err)
	return value
}

func TestInstancesReadingsFollowFromWhatInstancesCount(t *testing.T) {
	java, other := runtime{id: "0", failuresTimed: true}, runtime{id: "1", failuresTimed: true}
	python, sink := runtime{id: "0"}, runtime{id: "0", untimed: true}
	tests := map[string]struct {
		looks     []look
		consumers Measurement
		// staleAfter is a minute by default.
		staleAfter time.Duration
		check      func(*testing.T, InstancesReading)
	}{
		"sums rates and averages busy time over instances": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(0, 0, 0, 0, 0), other.counts(100, 100, 0, 100, 10*time.Second)}},
				{at: 10, instances: []InstanceSample{
					java.counts(90, 80, 10, 90, 9*time.Second),
					other.counts(130, 130, 0, 130, 13*time.Second),
				}},
			},
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 11, valueOf(t, r.ProcessRate), 1e-9)
				require.InDelta(t, 1, valueOf(t, r.UserExceptionRate), 1e-9)
				require.InDelta(t, 0, valueOf(t, r.SystemExceptionRate), 0)
				require.InDelta(t, 0.6, valueOf(t, r.Busy), 1e-9)
				require.InDelta(t, 0.1, valueOf(t, r.ServiceTime), 1e-9)
				require.InDelta(t, 0, valueOf(t, r.InFlight), 0)
				require.InDelta(t, 2, valueOf(t, r.Answering), 0)
				require.Equal(t, 10*time.Second, r.Window)
			},
		},
		"counts an instance with one answer as answering, without rates": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(0, 0, 0, 0, 0)}, silent: 1},
				{at: 10, instances: []InstanceSample{
					java.counts(50, 50, 0, 50, 5*time.Second),
					other.counts(1000, 1000, 0, 1000, time.Minute),
				}},
			},
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 5, leastOf(t, r.ProcessRate), 1e-9)
				require.InDelta(t, 0, valueOf(t, r.InFlight), 0)
				require.InDelta(t, 0.5, valueOf(t, r.Busy), 1e-9)
				require.InDelta(t, 2, valueOf(t, r.Answering), 0)
				require.InDelta(t, 0, valueOf(t, r.Silent), 0)
			},
		},
		"leaves out an instance that became silent, and counts it": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(0, 0, 0, 0, 0), other.counts(0, 0, 0, 0, 0)}},
				{at: 10, instances: []InstanceSample{java.counts(50, 50, 0, 50, 5*time.Second)}, silent: 1},
			},
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 5, leastOf(t, r.ProcessRate), 1e-9)
				require.InDelta(t, 1, valueOf(t, r.Silent), 0)
			},
		},
		"knows the least of every sum while one that consumes is silent": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(0, 0, 0, 0, 0)}, silent: 1},
				{at: 10, instances: []InstanceSample{java.counts(71, 50, 20, 70, 5*time.Second)}, silent: 1},
			},
			consumers: Known(2),
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 5, leastOf(t, r.ProcessRate), 1e-9)
				require.InDelta(t, 2, leastOf(t, r.UserExceptionRate), 1e-9)
				require.InDelta(t, 0, leastOf(t, r.SystemExceptionRate), 0)
				require.InDelta(t, 1, leastOf(t, r.InFlight), 0)
				require.InDelta(t, 0.5, valueOf(t, r.Busy), 1e-9)
				require.InDelta(t, 1.0/14, valueOf(t, r.ServiceTime), 1e-9)
			},
		},
		"knows the least of the rate if more consume than were asked": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(0, 0, 0, 0, 0)}},
				{at: 10, instances: []InstanceSample{java.counts(51, 50, 0, 50, 5*time.Second)}},
			},
			consumers: Known(2),
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 5, leastOf(t, r.ProcessRate), 1e-9)
				require.InDelta(t, 1, valueOf(t, r.InFlight), 0)
				require.InDelta(t, 0, valueOf(t, r.UserExceptionRate), 0)
				require.InDelta(t, 0.5, valueOf(t, r.Busy), 1e-9)
			},
		},
		"knows the rate of all that consume while more start": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(0, 0, 0, 0, 0)}, silent: 2},
				{at: 10, instances: []InstanceSample{
					java.counts(50, 50, 0, 50, 5*time.Second),
					other.counts(0, 0, 0, 0, 0),
				}, silent: 1},
			},
			consumers: Known(1),
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 5, valueOf(t, r.ProcessRate), 1e-9)
				require.InDelta(t, 0, valueOf(t, r.UserExceptionRate), 0)
			},
		},
		"measures between the times at which an instance was read": {
			looks: []look{
				{at: 0, instances: []InstanceSample{readAt(0, java.counts(0, 0, 0, 0, 0)), other.counts(0, 0, 0, 0, 0)}},
				{at: 10, instances: []InstanceSample{
					readAt(12, java.counts(60, 60, 0, 60, 6*time.Second)),
					other.counts(50, 50, 0, 50, 5*time.Second),
				}},
			},
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 2, valueOf(t, r.Answering), 0)
				require.InDelta(t, 10, valueOf(t, r.ProcessRate), 1e-9)
				require.InDelta(t, 0.5, valueOf(t, r.Busy), 1e-9)
			},
		},
		"compares answers that are as rare as readings may be old": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(14, 10, 0, 14, time.Second)}},
				{at: 450, instances: []InstanceSample{java.counts(914, 914, 0, 914, 91*time.Second)}},
			},
			staleAfter: 15 * time.Minute,
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 2, valueOf(t, r.ProcessRate), 0.01)
				require.InDelta(t, 0.2, valueOf(t, r.Busy), 1e-9)
				require.True(t, r.Asynchronous, "it would look idle")
			},
		},
		"does not compare answers around an outage": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(0, 0, 0, 0, 0)}},
				{at: 301, instances: []InstanceSample{java.counts(900, 900, 0, 900, 90*time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) {
				_, err := r.ProcessRate.Value()
				require.ErrorIs(t, err, ErrNoRate)
			},
		},
		"drops the pair around a restart": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(900, 900, 0, 900, 90*time.Second)}},
				{at: 5, instances: []InstanceSample{java.counts(950, 950, 0, 950, 92*time.Second)}},
				{at: 10, instances: []InstanceSample{java.counts(20, 20, 0, 20, time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 10, valueOf(t, r.ProcessRate), 1e-9)
				require.InDelta(t, 0.4, valueOf(t, r.Busy), 1e-9)
			},
		},
		"knows no rate if the only pair has a restart": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(900, 900, 0, 900, 90*time.Second)}},
				{at: 10, instances: []InstanceSample{java.counts(20, 20, 0, 20, time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) {
				for _, m := range []Measurement{r.ProcessRate, r.UserExceptionRate, r.SystemExceptionRate, r.Busy} {
					_, err := m.Value()
					require.ErrorIs(t, err, ErrNoRate)
				}
				require.InDelta(t, 0, valueOf(t, r.InFlight), 0)
			},
		},
		"reads a call that does not end as busy": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(8, 7, 0, 7, time.Second)}},
				{at: 10, instances: []InstanceSample{java.counts(8, 7, 0, 7, time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 1, valueOf(t, r.Busy), 1e-9)
				require.False(t, r.ServiceTime.Known(), "no call ended")
				require.InDelta(t, 1, valueOf(t, r.InFlight), 0)
			},
		},
		"counts a long call once, while it runs or when it ends": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(7, 7, 0, 7, time.Second)}},
				{at: 5, instances: []InstanceSample{java.counts(8, 8, 0, 8, 2*time.Second)}},
				{at: 10, instances: []InstanceSample{java.counts(9, 8, 0, 8, 2*time.Second)}},
				{at: 15, instances: []InstanceSample{java.counts(9, 8, 0, 8, 2*time.Second)}},
				{at: 20, instances: []InstanceSample{java.counts(9, 9, 0, 9, 14*time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 13.0/20, valueOf(t, r.Busy), 1e-9)
				require.InDelta(t, 6.5, valueOf(t, r.ServiceTime), 1e-9)
			},
		},
		"does not count the time before an instance was first seen": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(1, 0, 0, 0, 0)}},
				{at: 10, instances: []InstanceSample{java.counts(1, 1, 0, 1, time.Minute)}},
			},
			check: func(t *testing.T, r InstancesReading) { require.InDelta(t, 1, valueOf(t, r.Busy), 1e-9) },
		},
		"compares over several calls where calls are long": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(0, 0, 0, 0, 0)}},
				{at: 10, instances: []InstanceSample{java.counts(3, 2, 0, 2, 8*time.Second)}},
				{at: 20, instances: []InstanceSample{java.counts(5, 4, 0, 4, 16*time.Second)}},
				{at: 30, instances: []InstanceSample{java.counts(8, 7, 0, 7, 28*time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) {
				require.Equal(t, 20*time.Second, r.Window)
				require.InDelta(t, 0.25, valueOf(t, r.ProcessRate), 1e-9)
			},
		},
		"keeps a failing call of Python as busy time": {
			looks: []look{
				{at: 0, instances: []InstanceSample{python.counts(100, 99, 0, 99, 10*time.Second)}},
				{at: 5, instances: []InstanceSample{python.counts(102, 99, 0, 99, 10*time.Second)}},
				{at: 10, instances: []InstanceSample{python.counts(120, 117, 1, 117, 12*time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) { require.InDelta(t, 0.5, valueOf(t, r.Busy), 1e-9) },
		},
		"does not know the busy time if many failed calls are untimed": {
			looks: []look{
				{at: 0, instances: []InstanceSample{python.counts(0, 0, 0, 0, 0)}},
				{at: 10, instances: []InstanceSample{python.counts(100, 80, 20, 80, 4*time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) {
				_, err := r.Busy.Value()
				require.ErrorIs(t, err, errNotAllTime)
				require.InDelta(t, 0.05, valueOf(t, r.ServiceTime), 1e-9)
				require.InDelta(t, 2, valueOf(t, r.UserExceptionRate), 1e-9)
			},
		},
		"does not know the busy time of a sink": {
			looks: []look{
				{at: 0, instances: []InstanceSample{sink.counts(0, 0, 0, 0, 0)}},
				{at: 10, instances: []InstanceSample{sink.counts(100, 90, 0, 0, 0)}},
			},
			check: func(t *testing.T, r InstancesReading) {
				for _, m := range []Measurement{r.Busy, r.ServiceTime} {
					_, err := m.Value()
					require.ErrorIs(t, err, errNotTimed)
				}
				require.InDelta(t, 9, valueOf(t, r.ProcessRate), 1e-9)
			},
		},
		"tells Python's read-ahead from an asynchronous function": {
			looks: []look{{at: 0, instances: []InstanceSample{python.counts(14, 10, 0, 10, time.Second)}}},
			check: func(t *testing.T, r InstancesReading) { require.False(t, r.Asynchronous) },
		},
		"remembers that instances were asynchronous": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(14, 10, 0, 14, time.Second)}},
				{at: 100, instances: []InstanceSample{java.counts(14, 14, 0, 14, time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) { require.True(t, r.Asynchronous) },
		},
		// 0.3 s a message, three pending and one in the call
		"reads an asynchronous function at its limit as measured": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(100, 96, 0, 99, 10*time.Second)}},
				{at: 10, instances: []InstanceSample{java.counts(233, 229, 0, 232, 19200*time.Millisecond)}},
			},
			check: func(t *testing.T, r InstancesReading) {
				require.True(t, r.Asynchronous)
				require.InDelta(t, 4, valueOf(t, r.InFlight), 0)
				require.InDelta(t, 0.92, valueOf(t, r.Busy), 0.01)
				require.InDelta(t, 13.3, valueOf(t, r.ProcessRate), 1e-9)
			},
		},
		"tells when the processes of the last ten minutes began": {
			looks: []look{{at: 600, instances: []InstanceSample{
				{ID: "a", Began: midday()}, {ID: "b", Began: midday().Add(-time.Second)}, {ID: "c"},
			}}},
			check: func(t *testing.T, r InstancesReading) {
				require.Equal(t, map[string]time.Time{"a": midday()}, r.Began)
			},
		},
		"forgets it once it was not seen for long": {
			looks: []look{
				{at: 0, instances: []InstanceSample{java.counts(14, 10, 0, 14, time.Second)}},
				{at: 100, instances: []InstanceSample{java.counts(14, 14, 0, 14, time.Second)}},
				{at: 301, instances: []InstanceSample{java.counts(14, 14, 0, 14, time.Second)}},
			},
			check: func(t *testing.T, r InstancesReading) { require.False(t, r.Asynchronous) },
		},
		"knows only silence if no instance answers": {
			looks: []look{{at: 0, instances: []InstanceSample{java.counts(1, 1, 0, 1, 1)}}, {at: 10, silent: 3}},
			check: func(t *testing.T, r InstancesReading) {
				require.InDelta(t, 3, valueOf(t, r.Silent), 0)
				require.InDelta(t, 0, valueOf(t, r.Answering), 0)
				for _, m := range []Measurement{
					r.ProcessRate, r.Busy, r.ServiceTime, r.InFlight,
					r.SystemExceptionRate,
				} {
					_, err := m.Value()
					require.ErrorIs(t, err, errNoInstance)
				}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store, err := NewStore(10*time.Second, cmp.Or(test.staleAfter, time.Minute), Bounds{})
			require.NoError(t, err)
			resize := Object{Namespace: "shop", Name: "resize"}
			store.Track("me", Subscription{Name: "s", Topics: []string{"orders"}, Workload: resize})
			var at time.Time
			for _, l := range test.looks {
				at = midday().Add(time.Duration(l.at) * time.Second)
				store.RecordInstances(resize, InstancesSample{At: at, Instances: l.instances, Silent: l.silent}, nil)
			}
			r := store.readInstances(resize, test.consumers, at)
			require.Equal(t, at, r.At)
			test.check(t, r)
		})
	}
}

func TestInstancesReadingSaysWhyNothingIsKnown(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
	require.NoError(t, err)
	resize := Object{Namespace: "shop", Name: "resize"}
	subscription := Subscription{Name: "s", Topics: []string{"orders"}, Workload: resize}
	store.Track("me", subscription)
	store.Feed(true)
	_, err = store.readInstances(resize, Known(1), midday()).Busy.Value()
	require.ErrorIs(t, err, ErrNoData)

	store.RecordInstances(resize, InstancesSample{At: midday(), Instances: []InstanceSample{{ID: "0"}}}, nil)
	stale := store.readInstances(resize, Known(1), midday().Add(time.Minute+1))
	require.Equal(t, midday(), stale.At)
	for _, m := range []Measurement{stale.Answering, stale.Silent, stale.InFlight, stale.ProcessRate} {
		_, err = m.Value()
		require.ErrorIs(t, err, ErrStale)
	}
}

func TestInstancesIgnoreAnswersOutOfOrder(t *testing.T) {
	var h instancesHistory
	h.add(InstancesSample{At: midday(), Instances: []InstanceSample{{ID: "0", Received: 2}}}, 10*time.Second, time.Minute)
	h.add(InstancesSample{At: midday().Add(-time.Second), Silent: 9}, 10*time.Second, time.Minute)
	r := h.read(Known(1))
	require.InDelta(t, 0, valueOf(t, r.Silent), 0)
	require.InDelta(t, 2, valueOf(t, r.InFlight), 0)
}
