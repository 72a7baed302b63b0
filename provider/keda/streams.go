// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

const (
	// refreshEvery bounds the delay of changes without an event: the decision maker is gone, or a held sample expires.
	refreshEvery = time.Second
	// minPause between two refreshes collects changes. The pause is also at least pauseFactor times the last refresh, so
	// that refreshes use at most a tenth of one processor, for any number of streams.
	minPause    = 100 * time.Millisecond
	pauseFactor = 9
)

// StreamIsActive sends whether the trigger needs a replica, as soon as that is known and each time it changes. It ends
// without an error when the server drains.
func (s *Server) StreamIsActive(ref *pb.ScaledObjectRef, client grpc.ServerStreamingServer[pb.IsActiveResponse]) error {
	var sent activity
	return s.stream(client.Context(), ref, nil, func(v view) error {
		if v.active == sent {
			return nil
		}
		sent = v.active
		return client.Send(&pb.IsActiveResponse{Result: v.active == isActive})
	})
}

// StreamMetricSpec sends the metric and its target likewise, if the threshold is a policy's. Its last message is what
// GetMetricSpec returns. Other triggers keep their spec, and KEDA reconciles a ScaledObject for each message: on
// Unimplemented it only calls GetMetricSpec, and opens no stream until the ScaledObject changes.
func (s *Server) StreamMetricSpec(ref *pb.ScaledObjectRef,
	client grpc.ServerStreamingServer[pb.GetMetricSpecResponse],
) error {
	check := func(t Trigger) error {
		if !t.borrowsThreshold() {
			return status.Error(codes.Unimplemented, "the spec of this trigger never changes: call GetMetricSpec")
		}
		return nil
	}
	var sent Spec
	return s.stream(client.Context(), ref, check, func(v view) error {
		if v.spec == sent {
			return nil
		}
		sent = v.spec
		return client.Send(v.spec.response())
	})
}

// stream sends the views of the trigger, unless check fails, to one client until that disconnects, the server drains,
// or the stream is old: it then ends without an error, after which KEDA connects again within two seconds, and after
// errors with growing delays. Of several views during a send, only the last follows.
func (s *Server) stream(ctx context.Context, ref *pb.ScaledObjectRef, check func(t Trigger) error,
	send func(v view) error,
) error {
	var watched *watch
	var mine *stream
	defer func() {
		if mine != nil {
			s.watches.remove(watched, mine)
		}
	}()
	if err := response.Aside(func() error {
		trigger, err := decode(ref)
		if err == nil && check != nil {
			err = check(trigger)
		}
		if err != nil {
			return err
		}
		if watched, mine, err = s.watches.add(trigger, s.endOf()); err != nil {
			return err
		}
		s.refresh(watched, s.now())
		return nil
	}); err != nil {
		return err
	}
	for !s.watches.over(mine, s.now()) {
		if err := send(watched.current()); err != nil {
			return err
		}
		select {
		case <-mine.changed:
		case <-ctx.Done():
			return response.Errorf(response.Canceled, "the client is gone")
		}
	}
	return nil
}

// endOf is when a stream that is opened now ends: at a random time at which its client has left the connection, so that
// the next stream is on another one.
func (s *Server) endOf() time.Time {
	if age := s.connectionAge; age > 0 {
		return s.now().Add(age + age/5 + rand.N(age/15))
	}
	return time.Time{}
}

func (s *Server) refresh(w *watch, now time.Time) {
	number := w.begin()
	trigger := w.trigger.Value()
	evaluated := s.evaluator.evaluate(trigger, now)
	spec, noSpec := evaluated.sample.Spec, evaluated.err
	if noSpec != nil {
		spec, noSpec = s.evaluator.spec(trigger, now)
	}
	w.publish(number, now, func(v *view) {
		if noSpec == nil {
			v.spec = spec
		}
		switch {
		case evaluated.err != nil:
		case evaluated.sample.Active:
			v.active = isActive
		default:
			v.active = inactive
		}
	})
}

// run refreshes the triggers with open streams until the context ends; then all streams end.
func (s *Server) run(ctx context.Context) {
	defer s.watches.drain()
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		isTick := false
		select {
		case <-ctx.Done():
			return
		case <-s.queue.ready:
		case <-ticker.C:
			isTick = true
		}
		start, now := time.Now(), s.now()
		changed := s.queue.drain()
		changed.all = changed.all || isTick
		s.refreshAll(changed, now)
		pause := time.NewTimer(max(minPause, pauseFactor*time.Since(start)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

func (s *Server) refreshAll(c changes, now time.Time) {
	for _, one := range s.watches.affected(c) {
		s.guard(one.trigger.Value(), func() { s.refresh(one, now) })
	}
}

// guard keeps a panic about one trigger from ending the process.
func (s *Server) guard(t Trigger, work func()) {
	defer func() {
		if cause := recover(); cause != nil {
			s.logger.Error("refreshing a trigger panicked", "scaledObject", t.Object.String(), "cause", fmt.Sprint(cause),
				"stack", string(debug.Stack()))
		}
	}()
	work()
}
