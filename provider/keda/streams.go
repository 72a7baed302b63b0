// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
)

const (
	// lookEvery is how late what no news tell of is seen: that the decision maker is gone, or that what was held is not
	// any more.
	lookEvery = time.Second
	// leastPause between two looks, in which news gather; and one is at least so many times as long as the look before it
	// was, so that looks take a tenth of one processor at most, however many streams there are.
	leastPause = 100 * time.Millisecond
	pauseTimes = 9
	// forgetEvery is how often what nobody asks for is looked for.
	forgetEvery = time.Minute
)

// StreamIsActive tells at once whether there must be a replica, or as soon as it is known, and then each time it
// changes. It ends without an error when the server drains.
func (s *Server) StreamIsActive(ref *pb.ScaledObjectRef, client grpc.ServerStreamingServer[pb.IsActiveResponse]) error {
	var told activity
	return s.stream(client.Context(), ref, func(v view) error {
		if v.active == told {
			return nil
		}
		told = v.active
		return client.Send(&pb.IsActiveResponse{Result: v.active == isActive})
	})
}

// StreamMetricSpec tells the metric and its target likewise. What it said last is what GetMetricSpec says.
func (s *Server) StreamMetricSpec(ref *pb.ScaledObjectRef,
	client grpc.ServerStreamingServer[pb.GetMetricSpecResponse],
) error {
	var told Spec
	return s.stream(client.Context(), ref, func(v view) error {
		if v.spec == told {
			return nil
		}
		told = v.spec
		return client.Send(v.spec.response())
	})
}

// stream tells one client of every view of the trigger until it goes or the server drains. Views that come while it is
// told of one are told of as the last of them.
func (s *Server) stream(ctx context.Context, ref *pb.ScaledObjectRef, tell func(v view) error) error {
	trigger, err := decode(ref)
	if err != nil {
		return statusError(err)
	}
	watched, mine, err := s.watches.join(trigger)
	if err != nil {
		return statusError(err)
	}
	defer s.watches.leave(watched, mine)
	s.look(watched, s.config.Now())
	for {
		if err := tell(watched.see()); err != nil {
			return err
		}
		select {
		case <-mine.changed:
		case <-s.drained:
			return nil
		case <-ctx.Done():
			return statusError(newFault(errGone, "the client is gone"))
		}
	}
}

// look at a trigger, and tell its streams.
func (s *Server) look(w *watch, now time.Time) {
	number := w.begin()
	answer := s.answer(w.trigger, now)
	spec, noSpec := answer.sample.Spec, answer.err
	if noSpec != nil {
		spec, noSpec = s.spec(w.trigger, now)
	}
	w.publish(number, func(v *view) {
		if noSpec == nil {
			v.spec = spec
		}
		switch {
		case answer.err != nil:
		case answer.sample.Active:
			v.active = isActive
		default:
			v.active = inactive
		}
	})
}

// Run tells streams what has changed, and forgets, until the context ends; then all streams end, and it
// returns nil.
func (s *Server) Run(ctx context.Context) error {
	defer close(s.drained)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var forgotten time.Time
	for {
		isTick := false
		select {
		case <-ctx.Done():
			return nil
		case <-s.inbox.arrived:
		case <-ticker.C:
			isTick = true
		}
		began, now := time.Now(), s.config.Now()
		s.round(s.inbox.take(), isTick, now)
		if now.Sub(forgotten) >= forgetEvery {
			forgotten = now
			s.memory.forget(now)
		}
		pause := time.NewTimer(max(leastPause, pauseTimes*time.Since(began)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

// round looks at what the news are about, and at the tick at everything.
func (s *Server) round(n news, isTick bool, now time.Time) {
	n.all = n.all || isTick
	for _, one := range s.watches.list(n, nil) {
		s.guard(one.trigger, func() { s.look(one, now) })
	}
}

// guard keeps a panic about one trigger from ending the process for all.
func (s *Server) guard(t Trigger, work func()) {
	defer func() {
		if cause := recover(); cause != nil {
			s.config.Logger.Error("looking at a trigger panicked", "scaledObject", t.Object.String(), "cause", fmt.Sprint(cause),
				"stack", string(debug.Stack()))
		}
	}()
	work()
}
