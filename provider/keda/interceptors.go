// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

// other is the label of the methods that are not ours.
const other = "other"

// methodOf is the label of a method: ours by name, all others as one. gRPC refuses unknown methods of ours before this.
func methodOf(full string) string {
	service, method := path.Split(full)
	if service != "/"+pb.ExternalScaler_ServiceDesc.ServiceName+"/" {
		return other
	}
	return method
}

type interceptors struct {
	metrics *metrics
	logger  *slog.Logger
	limiter *response.Limiter
}

func (i *interceptors) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler,
) (any, error) {
	start, method := time.Now(), methodOf(info.FullMethod)
	served, err := response.Do(ctx, i.limiter, func(ctx context.Context) (served any, err error) {
		defer i.recovered(info.FullMethod, &err)
		return handler(ctx, request)
	})
	err = statusError(err)
	i.metrics.requests.WithLabelValues(method, status.Code(err).String()).Inc()
	i.metrics.duration.WithLabelValues(method).Observe(time.Since(start).Seconds())
	return served, err
}

// stream counts a stream. Those of KEDA end by themselves, see Server.stream.
func (i *interceptors) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler,
) (err error) {
	method := methodOf(info.FullMethod)
	open := i.metrics.streams.WithLabelValues(method)
	open.Inc()
	defer open.Dec()
	defer func() {
		err = statusError(err)
		i.metrics.requests.WithLabelValues(method, status.Code(err).String()).Inc()
	}()
	defer i.recovered(info.FullMethod, &err)
	return handler(server, asideStream{stream})
}

// recovered turns a panic into an error: one bad object must not end the process.
func (i *interceptors) recovered(method string, err *error) {
	if cause := recover(); cause != nil {
		i.logger.Error("serving KEDA panicked", "method", path.Base(method), "cause", fmt.Sprint(cause), "stack",
			string(debug.Stack()))
		*err = response.Errorf(response.Internal, "the scaler has a bug: see its log")
	}
}

// asideStream encodes and decodes aside, so that the stack of a stream stays small.
type asideStream struct{ grpc.ServerStream }

// SendMsg implements grpc.ServerStream.
func (a asideStream) SendMsg(message any) error {
	return response.Aside(func() error { return a.ServerStream.SendMsg(message) })
}

// RecvMsg implements grpc.ServerStream.
func (a asideStream) RecvMsg(message any) error {
	return response.Aside(func() error { return a.ServerStream.RecvMsg(message) })
}
