// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"
)

// instancesHistory computes an InstancesReading from the counters of one workload's instances. The zero value is empty.
// It keeps about 120 bytes for each instance and answer within its window, and is not safe for concurrent use.
type instancesHistory struct {
	at        time.Time
	silent    int
	instances map[string]*instanceHistory
	// asynchronousUntil is how long instances count as asynchronous after one was seen with more messages in flight than a
	// synchronous one can have.
	asynchronousUntil time.Time
}

const (
	// severalCalls fit into the window of an instance: busy time comes in whole calls, each end of the window is off by at
	// most half a call, and 5 calls reduce the mean error below a tenth.
	severalCalls = 5
	// longestInstanceWindow bounds the window for calls of more than a minute. Two answers further apart are not compared,
	// unless readings stay in use for longer, since then answers may be rarer.
	longestInstanceWindow = 5 * time.Minute
)

var (
	errNoInstance = fmt.Errorf("%w: no instance answered", ErrNoData)
	errNoCalls    = fmt.Errorf("%w: no call of the function ended within the window", ErrNoData)
	errNotAll     = fmt.Errorf("%w: more instances consume than have shown their counters", ErrPartial)
	errNotTimed   = errors.New("sinks and sources do not measure their calls")
	errNotAllTime = errors.New("this runtime does not time calls that fail, and many did")
)

// unknownInstances is the reading if nothing is known about the instances.
func unknownInstances(reason error) InstancesReading {
	unknown := Unknown(reason)
	return InstancesReading{
		Answering: unknown, Silent: unknown,
		ProcessRate: unknown, UserExceptionRate: unknown, SystemExceptionRate: unknown,
		Busy: unknown, ServiceTime: unknown, InFlight: unknown,
	}
}

// add adds an answer of the instances; answers that are not newer than the last are dropped. The window is the minimum
// time that rates are measured over; it is wider for an instance with long calls.
func (h *instancesHistory) add(sample InstancesSample, window, staleAfter time.Duration) {
	if !sample.At.After(h.at) {
		return
	}
	if h.instances == nil {
		h.instances = make(map[string]*instanceHistory, len(sample.Instances))
	}
	h.at, h.silent = sample.At, sample.Silent
	longest := max(longestInstanceWindow, staleAfter)
	for _, one := range sample.Instances {
		instance := h.instances[one.ID]
		if instance == nil {
			instance = &instanceHistory{}
			h.instances[one.ID] = instance
		}
		instance.add(one, cmp.Or(one.At, sample.At), window, longest)
		// Only Java has asynchronous functions.
		if one.FailedCallsCounted && one.InFlight() > MostSynchronous {
			h.asynchronousUntil = sample.At.Add(longest)
		}
	}
	for id, instance := range h.instances {
		if sample.At.Sub(instance.at) > longest {
			delete(h.instances, id)
		}
	}
}

// read returns the reading. consumers are those of the subscription, if known.
func (h *instancesHistory) read(consumers Measurement) InstancesReading {
	sum := instancesSum{silent: h.silent, consuming: math.Inf(1)}
	if consuming, err := consumers.Value(); err == nil {
		sum.consuming = consuming
	}
	var began map[string]time.Time
	for id, instance := range h.instances {
		if instance.at.Before(h.at) {
			continue
		}
		sum.add(instance)
		if h.at.Sub(instance.last.Began) <= StartedFor {
			if began == nil {
				began = map[string]time.Time{}
			}
			began[id] = instance.last.Began
		}
	}
	r := sum.reading()
	r.Began = began
	r.At = h.at
	r.Answering = Known(float64(sum.answering))
	r.Silent = Known(float64(h.silent))
	r.Asynchronous = !h.at.After(h.asynchronousUntil)
	return r
}

type instancesSum struct {
	answering, silent        int
	measured                 int
	consuming                float64 // infinite if unknown
	processed                float64 // per second
	userFailed, systemFailed float64 // per second
	window                   time.Duration

	inFlight int64

	busy            float64 // share of the time, summed over timed instances
	timed           int
	failedUntimed   bool
	calls           int64
	called          time.Duration
	withoutMeasures int // instances that do not time their calls
}

func (s *instancesSum) add(instance *instanceHistory) {
	s.answering++
	s.inFlight += max(0, instance.last.InFlight())
	if instance.last.BusyTime == nil {
		s.withoutMeasures++
	}
	total := instance.overWindow()
	seconds := total.observed.Seconds()
	if seconds <= 0 {
		return
	}
	s.measured++
	s.window = max(s.window, total.observed)
	s.processed += float64(total.processed) / seconds
	s.userFailed += float64(total.userFailed) / seconds
	s.systemFailed += float64(total.systemFailed) / seconds
	if instance.last.BusyTime == nil {
		return
	}
	s.calls += total.calls
	s.called += total.called
	if total.untimed > 0 && total.untimed*10 > total.calls+total.untimed {
		s.failedUntimed = true // more than a tenth: the busy time is too small by about the same share
		return
	}
	s.busy += total.busy.Seconds() / seconds
	s.timed++
}

func (s *instancesSum) reading() InstancesReading {
	if s.answering == 0 {
		return unknownInstances(errNoInstance)
	}
	r := unknownInstances(ErrNoRate)
	asked := float64(s.answering + s.silent)
	consuming := min(asked, s.consuming) // one that starts is silent, and does not consume yet
	r.InFlight = over(s.answering, consuming, float64(s.inFlight))
	r.ServiceTime = Unknown(errNoCalls)
	switch {
	case s.timed > 0:
		r.Timed = s.timed
		r.Busy = Known(max(0, s.busy/float64(s.timed))) // negative if a call was assumed to have started too early
	case s.failedUntimed:
		r.Busy = Unknown(errNotAllTime)
	}
	if s.withoutMeasures == s.answering {
		r.Busy, r.ServiceTime = Unknown(errNotTimed), Unknown(errNotTimed)
	}
	if s.calls > 0 {
		r.ServiceTime = Known(s.called.Seconds() / float64(s.calls))
	}
	if s.measured > 0 {
		r.Window = s.window
		r.UserExceptionRate = over(s.measured, consuming, s.userFailed)
		r.SystemExceptionRate = over(s.measured, consuming, s.systemFailed)
		if !math.IsInf(s.consuming, 1) {
			consuming = s.consuming // decisions need the rate of all, also of those that were added since the last answer
		}
		r.ProcessRate = over(s.measured, consuming, s.processed)
	}
	return r
}

// over is a sum over some instances: a lower bound if more consume.
func over(instances int, consuming, sum float64) Measurement {
	if float64(instances) >= consuming {
		return Known(sum)
	}
	return AtLeast(sum, errNotAll)
}

// instanceHistory is the recent history of one instance's counters.
type instanceHistory struct {
	at   time.Time
	last InstanceSample
	// points are running totals that survive restarts of the instance, oldest first.
	points []instancePoint
	// credited is the busy time that the current call got before it ended and was counted.
	credited time.Duration
	// call is the mean time of the calls that ended last.
	call time.Duration
	// sawCallEnd is true if a call ended since the instance was first seen. The first call may have started before.
	sawCallEnd bool
}

// instancePoint has running totals over the valid pairs of answers, as flow has.
type instancePoint struct {
	at time.Time
	instanceTotals
}

type instanceTotals struct {
	observed                 time.Duration
	processed                int64
	userFailed, systemFailed int64
	// calls that ended and were timed, and their total time. untimed calls failed in a runtime that only times success.
	calls, untimed int64
	called         time.Duration
	// busy is called, with the part of a long call credited to the time in which it was seen to run.
	busy time.Duration
}

func (t instanceTotals) minus(o instanceTotals) instanceTotals {
	return instanceTotals{
		observed:   t.observed - o.observed,
		processed:  t.processed - o.processed,
		userFailed: t.userFailed - o.userFailed, systemFailed: t.systemFailed - o.systemFailed,
		calls: t.calls - o.calls, untimed: t.untimed - o.untimed, called: t.called - o.called, busy: t.busy - o.busy,
	}
}

// add adds an answer. A counter that fell means a restart: the pair around it does not count.
func (h *instanceHistory) add(now InstanceSample, at time.Time, window, longest time.Duration) {
	next := instancePoint{at: at}
	interval := at.Sub(h.at)
	switch {
	case len(h.points) == 0:
	case restarted(h.last, now) || interval > longest:
		next.instanceTotals = h.points[len(h.points)-1].instanceTotals
		h.sawCallEnd, h.credited = false, 0
	default:
		next.instanceTotals = h.since(now, at)
	}
	h.at, h.last = at, now
	h.points = append(h.points, next)
	if total := h.overWindow(); total.calls > 0 {
		h.call = total.called / time.Duration(total.calls)
	}
	h.points = dropBefore(h.points, at.Add(-h.width(window)), func(p instancePoint) time.Time { return p.at })
}

// since adds the changes since the last answer to the totals.
func (h *instanceHistory) since(now InstanceSample, at time.Time) instanceTotals {
	t, before := h.points[len(h.points)-1].instanceTotals, h.last
	interval := at.Sub(h.at)
	t.observed += interval
	t.processed += now.Processed - before.Processed
	t.userFailed += now.UserExceptions - before.UserExceptions
	t.systemFailed += now.SystemExceptions - before.SystemExceptions
	if !timed(now) || !timed(before) {
		return t
	}
	calls, called := *now.Calls-*before.Calls, *now.BusyTime-*before.BusyTime
	t.calls += calls
	t.called += called
	if !now.FailedCallsCounted {
		t.untimed += now.UserExceptions - before.UserExceptions
	}
	t.busy += h.busyFor(interval, called, now)
	return t
}

// busyFor is the time in calls during an interval in which ended calls took called in total.
//
// A call counts when it ends, so 2 s calls that are read each second would read as 0, 2, 0, 2. Therefore the interval
// is credited with the part of a running call, which is subtracted when the call is counted: the sum stays correct. The
// start of a call within the interval is not known. After other calls it is assumed to have started when they ended, as
// under full load; other calls are assumed to have started in the middle, or half a mean call time ago if later.
func (h *instanceHistory) busyFor(interval, called time.Duration, now InstanceSample) time.Duration {
	working, was := inCall(now) > 0, inCall(h.last) > 0
	if ended(now) == ended(h.last) {
		var busy time.Duration
		switch {
		case working && was:
			busy = interval
		case working:
			busy = min(interval, h.call) / 2
		}
		h.credited += busy
		return busy
	}
	busy := called - h.credited
	if !h.sawCallEnd {
		busy = min(busy, interval) // the rest was before the instance was first seen
	}
	if !now.FailedCallsCounted && now.UserExceptions > h.last.UserExceptions {
		busy = max(0, busy) // a failed call keeps its credit, since it is never counted
	}
	h.credited, h.sawCallEnd = 0, true
	if working {
		h.credited = max(0, min(interval-busy, h.call))
	}
	return busy + h.credited
}

// width is how far back the totals are compared: the window, or several calls if calls are long.
func (h *instanceHistory) width(window time.Duration) time.Duration {
	return max(window, min(severalCalls*max(h.call, h.credited), longestInstanceWindow))
}

func (h *instanceHistory) overWindow() instanceTotals {
	if len(h.points) == 0 {
		return instanceTotals{}
	}
	return h.points[len(h.points)-1].minus(h.points[0].instanceTotals)
}

func timed(s InstanceSample) bool { return s.Calls != nil && s.BusyTime != nil }

// ended is the number of calls that ended, successfully or not.
func ended(s InstanceSample) int64 {
	if s.FailedCallsCounted {
		return *s.Calls
	}
	return *s.Calls + s.UserExceptions
}

// inCall is above 0 while the instance is in a call: it received more messages than calls ended. This also holds for
// asynchronous functions, where calls end before their messages do. System exceptions may occur without a call.
func inCall(s InstanceSample) int64 {
	if !timed(s) {
		return 0
	}
	return s.Received - ended(s) - s.SystemExceptions
}

func restarted(before, now InstanceSample) bool {
	return now.Received < before.Received || now.Processed < before.Processed ||
		now.UserExceptions < before.UserExceptions || now.SystemExceptions < before.SystemExceptions ||
		timed(before) && timed(now) && (*now.Calls < *before.Calls || *now.BusyTime < *before.BusyTime)
}

// InstanceAddress is the metrics endpoint of one instance of a workload.
type InstanceAddress struct {
	// ID distinguishes the instances of a workload, such as the name of the pod.
	ID string
	// Address is that of its pod, such as 10.2.0.17:9094.
	Address netip.AddrPort
}
