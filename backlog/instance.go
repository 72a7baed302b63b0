// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// instanceHistory is what one instance counted lately.
type instanceHistory struct {
	at   time.Time
	last InstanceSample
	// points are running totals that survive restarts of the instance, oldest first.
	points []instancePoint
	// credited is how much busy time was given to the call that the instance is in, before it ended and was counted.
	credited time.Duration
	// call is the mean time of a call when last some ended.
	call time.Duration
	// sawCallEnd says that a call ended since the instance was first seen. The time of the first one to end may lie
	// before.
	sawCallEnd bool
}

// instancePoint holds running totals over the pairs of answers that are sound, as flow does.
type instancePoint struct {
	at time.Time
	instanceTotals
}

type instanceTotals struct {
	observed                 time.Duration
	received, processed      int64
	userFailed, systemFailed int64
	// calls that ended and were timed, and the time that they took; untimed are those that failed where only success is
	// timed.
	calls, untimed int64
	called         time.Duration
	// busy is called, with the part of a long call given to the time in which it was seen to run.
	busy time.Duration
}

func (t instanceTotals) minus(o instanceTotals) instanceTotals {
	return instanceTotals{
		observed: t.observed - o.observed,
		received: t.received - o.received, processed: t.processed - o.processed,
		userFailed: t.userFailed - o.userFailed, systemFailed: t.systemFailed - o.systemFailed,
		calls: t.calls - o.calls, untimed: t.untimed - o.untimed, called: t.called - o.called, busy: t.busy - o.busy,
	}
}

// add takes in an answer. A counter that fell means a restart: the pair around it counts for nothing.
func (h *instanceHistory) add(now InstanceSample, at time.Time, window time.Duration) {
	next := instancePoint{at: at}
	interval := at.Sub(h.at)
	switch {
	case len(h.points) == 0:
	case restarted(h.last, now) || interval > longestInstanceWindow:
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

// since adds what happened since the last answer to the totals.
func (h *instanceHistory) since(now InstanceSample, at time.Time) instanceTotals {
	t, before := h.points[len(h.points)-1].instanceTotals, h.last
	interval := at.Sub(h.at)
	t.observed += interval
	t.received += now.Received - before.Received
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

// busyFor is how long the instance was in calls during an interval in which calls of the given length were counted.
//
// A call counts when it ends, so 2 s calls that are read each second would read as 0, 2, 0, 2. So the interval is given
// what a call that runs has had of it, which is taken off again when the call is counted: the sum stays true. When the
// call began within the interval is not known. Behind others it is taken to have begun as they ended, as under full
// load, and alone in the middle, but never more than a usual call ago.
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
		busy = max(0, busy) // a call that failed keeps what it was given, because it is never counted
	}
	h.credited, h.sawCallEnd = 0, true
	if working {
		h.credited = max(0, min(interval-busy, h.call))
	}
	return busy + h.credited
}

// width is how far back the totals are compared: the window, or several calls where they are long.
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

// ended is how many calls ended, well or not.
func ended(s InstanceSample) int64 {
	if s.FailedCallsCounted {
		return *s.Calls
	}
	return *s.Calls + s.UserExceptions
}

// inCall is above 0 while the instance is in a call: it received more than calls ended. That holds for asynchronous
// functions too: their calls end before their messages do. System exceptions may come without a call.
func inCall(s InstanceSample) int64 {
	if !timed(s) {
		return 0
	}
	return s.Received - ended(s) - s.SystemExceptions
}

// restarted says whether a counter fell.
func restarted(before, now InstanceSample) bool {
	return now.Received < before.Received || now.Processed < before.Processed ||
		now.UserExceptions < before.UserExceptions || now.SystemExceptions < before.SystemExceptions ||
		timed(before) && timed(now) && (*now.Calls < *before.Calls || *now.BusyTime < *before.BusyTime)
}

// InstanceAddress is where one instance of a workload serves its metrics.
type InstanceAddress struct {
	// ID distinguishes the instances of a workload, such as the name of the pod.
	ID string
	// HostPort is an IP address or a name, and a port, such as 10.2.0.17:9094.
	HostPort string
	// Component is tenant/namespace/name of the function, sink or source that is meant, where several share a process and
	// its metrics, as on a function worker; empty for the only one there.
	Component string
}
