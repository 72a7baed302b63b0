// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"fmt"
	"time"
)

// instancesHistory computes an InstancesReading from the counters of one workload's instances. The zero value is empty.
// It keeps about 120 bytes for each instance and answer within its window, and is not safe for concurrent use.
type instancesHistory struct {
	at        time.Time
	silent    int
	instances map[string]*instanceHistory
	// asynchronousAt is when an instance was last seen with more messages in flight than a synchronous one can have.
	asynchronousAt time.Time
}

const (
	// severalCalls fit into the window of an instance: busy time comes in whole calls, each end of the window is off by at
	// most half a call, and 5 calls reduce the mean error below a tenth.
	severalCalls = 5
	// longestInstanceWindow bounds the window for calls of more than a minute; two answers further apart are not compared.
	longestInstanceWindow = 5 * time.Minute
)

var (
	errNoInstance = fmt.Errorf("%w: no instance answered", ErrNoData)
	errNoCalls    = fmt.Errorf("%w: no call of the function ended within the window", ErrNoData)
	errNotTimed   = errors.New("sinks and sources do not measure their calls")
	errNotAllTime = errors.New("this runtime does not time calls that fail, and many did")
)

// unknownInstances is the reading if nothing is known about the instances.
func unknownInstances(reason error) InstancesReading {
	unknown := Unknown(reason)
	return InstancesReading{
		Answering: unknown, Silent: unknown,
		ReceiveRate: unknown, ProcessRate: unknown, UserExceptionRate: unknown, SystemExceptionRate: unknown,
		Busy: unknown, ServiceTime: unknown, InFlight: unknown,
	}
}

// add adds an answer of the instances; answers that are not newer than the last are dropped. The window is the minimum
// time that rates are measured over; it is wider for an instance with long calls.
func (h *instancesHistory) add(sample InstancesSample, window time.Duration) {
	if !sample.At.After(h.at) {
		return
	}
	if h.instances == nil {
		h.instances = make(map[string]*instanceHistory, len(sample.Instances))
	}
	h.at, h.silent = sample.At, sample.Silent
	for _, one := range sample.Instances {
		instance := h.instances[one.ID]
		if instance == nil {
			instance = &instanceHistory{}
			h.instances[one.ID] = instance
		}
		instance.add(one, sample.At, window)
		// Only Java has asynchronous functions.
		if one.FailedCallsCounted && one.InFlight() > MostSynchronous {
			h.asynchronousAt = sample.At
		}
	}
	for id, instance := range h.instances {
		if sample.At.Sub(instance.at) > longestInstanceWindow {
			delete(h.instances, id)
		}
	}
}

// read sums up the instances that answered the last request.
func (h *instancesHistory) read() InstancesReading {
	var sum instancesSum
	var began map[string]time.Time
	for id, instance := range h.instances {
		if !instance.at.Equal(h.at) {
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
	r.Asynchronous = !h.asynchronousAt.IsZero() && h.at.Sub(h.asynchronousAt) <= longestInstanceWindow
	return r
}

// instancesSum sums up the instances of one reading.
type instancesSum struct {
	answering, measured      int
	received, processed      float64 // per second
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
	s.received += float64(total.received) / seconds
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
	r.InFlight = Known(float64(s.inFlight))
	r.ServiceTime = Unknown(errNoCalls)
	switch {
	case s.timed > 0:
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
		r.ReceiveRate, r.ProcessRate = Known(s.received), Known(s.processed)
		r.UserExceptionRate, r.SystemExceptionRate = Known(s.userFailed), Known(s.systemFailed)
	}
	return r
}
