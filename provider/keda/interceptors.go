// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"runtime/debug"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

const (
	// budget is how long one answer may take. KEDA sets no deadline: one that hangs blocks the ScaledObject for good, and
	// a few of them all HorizontalPodAutoscalers of the cluster.
	budget = 250 * time.Millisecond
	// maxAnswers under way at once; more wait their turn, for budget at most. One that hangs goes on to count when its
	// client already has an error: they cannot pile up.
	maxAnswers = 400
)

// methodOf is the label of a method: ours by name, others as one.
func methodOf(full string) string {
	for _, method := range pb.ExternalScaler_ServiceDesc.Methods {
		if full == "/"+pb.ExternalScaler_ServiceDesc.ServiceName+"/"+method.MethodName {
			return method.MethodName
		}
	}
	for _, stream := range pb.ExternalScaler_ServiceDesc.Streams {
		if full == "/"+pb.ExternalScaler_ServiceDesc.ServiceName+"/"+stream.StreamName {
			return stream.StreamName
		}
	}
	return "other"
}

// interceptors stand between the network and the handlers.
type interceptors struct {
	observed *requestMetrics
	logger   *slog.Logger
	answers  *answers
	// draining ends when streams have to.
	draining context.Context //nolint:containedctx // the life of the server, which no request has
	// streamsEnd is the age of a connection at which its streams end, spread over some time more.
	streamsEnd, spread time.Duration
}

// answers are the goroutines that work on an answer.
type answers struct {
	group errgroup.Group
	// turns has an element for each that is under way.
	turns chan struct{}
}

func newAnswers() *answers { return &answers{turns: make(chan struct{}, maxAnswers)} }

// begin the work, or return false when no turn comes until the context ends.
func (a *answers) begin(ctx context.Context, work func()) bool {
	select {
	case a.turns <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	a.group.Go(func() error {
		defer func() { <-a.turns }()
		work()
		return nil
	})
	return true
}

// unary observes an answer, and gives up waiting for it after budget.
func (i *interceptors) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler,
) (any, error) {
	began, method := time.Now(), methodOf(info.FullMethod)
	response, err := i.inTime(ctx, func(ctx context.Context) (response any, err error) {
		defer i.recovered(info.FullMethod, &err)
		return handler(ctx, request)
	})
	i.observed.requests.WithLabelValues(method, status.Code(err).String()).Inc()
	i.observed.duration.WithLabelValues(method).Observe(time.Since(began).Seconds())
	return response, err
}

// inTime runs the work.
func (i *interceptors) inTime(ctx context.Context, work func(context.Context) (any, error)) (any, error) {
	type answer struct {
		response any
		err      error
	}
	limited, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	done := make(chan answer, 1)
	began := i.answers.begin(limited, func() {
		response, err := work(limited)
		done <- answer{response, err}
	})
	if !began && ctx.Err() == nil {
		return nil, statusError(newFault(errBusy, "the scaler is overloaded: %d answers are under way", maxAnswers))
	}
	select {
	case a := <-done:
		return a.response, a.err
	case <-limited.Done():
		if ctx.Err() != nil {
			return nil, statusError(newFault(errGone, "the client is gone"))
		}
		return nil, statusError(newFault(errTooSlow, "the scaler did not answer within %s", budget))
	}
}

// stream observes a stream, and ends it without an error when the server drains or the connection is old: KEDA comes
// back after two seconds then, and after an error later each time.
func (i *interceptors) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler,
) (err error) {
	method := methodOf(info.FullMethod)
	open := i.observed.streams.WithLabelValues(method)
	open.Inc()
	defer open.Dec()
	defer func() { i.observed.requests.WithLabelValues(method, status.Code(err).String()).Inc() }()
	defer i.recovered(info.FullMethod, &err)

	limited, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(i.draining, cancel)()
	if opened, known := openedAt(limited); known {
		timer := time.AfterFunc(time.Until(opened.Add(i.streamsEnd+rand.N(i.spread))), cancel)
		defer timer.Stop()
	}
	err = handler(server, &limitedStream{stream, limited})
	if limited.Err() != nil && stream.Context().Err() == nil {
		return nil
	}
	return err
}

// recovered turns a panic into an error: one wrong object must not end the process for all.
func (i *interceptors) recovered(method string, err *error) {
	if cause := recover(); cause != nil {
		i.logger.Error("answering KEDA panicked", "method", path.Base(method), "cause", fmt.Sprint(cause), "stack",
			string(debug.Stack()))
		*err = status.Error(codes.Internal, "the scaler has a bug, its log says more")
	}
}

// limitedStream is a stream with a context that ends earlier.
type limitedStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // as grpc.ServerStream has it
}

func (l *limitedStream) Context() context.Context { return l.ctx }

// connections puts the time into the context at which the connection was opened.
type connections struct{}

type openedKey struct{}

func openedAt(ctx context.Context) (time.Time, bool) {
	at, known := ctx.Value(openedKey{}).(time.Time)
	return at, known
}

// TagConn implements stats.Handler.
func (connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, openedKey{}, time.Now())
}

// HandleConn implements stats.Handler.
func (connections) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC implements stats.Handler.
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (connections) HandleRPC(context.Context, stats.RPCStats) {}
