// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

// Config configures New; all fields are required.
type Config struct {
	Policies      response.Policies
	DecisionMaker response.DecisionMaker
	Signals       Signals
	ScaledObjects ScaledObjects
	// Now returns the time, such as time.Now.
	Now func() time.Time
	// HoldFor is how long the last known sample is held while the trigger is unknown, from 1m to 24h.
	HoldFor time.Duration
	// MaxStreamsPerNamespace bounds the open streams for ScaledObjects of one namespace, from 1 to 40,000.
	MaxStreamsPerNamespace int
	// Logger logs when triggers become unknown, and known again.
	Logger *slog.Logger
	// Registerer registers the metrics about requests.
	Registerer prometheus.Registerer
}

// Server serves KEDA from the cache. It is safe for concurrent use. Serve runs it.
type Server struct {
	pb.UnimplementedExternalScalerServer

	evaluator *evaluator
	now       func() time.Time
	logger    *slog.Logger
	watches   *watches
	queue     *changeQueue
	metrics   *metrics
	// connectionAge ends streams, see endOf; 0 for never. Serve sets it.
	connectionAge time.Duration
}

// New registers the metrics.
func New(config Config) *Server {
	last := newLastSamples(config.HoldFor, maxTriggers, config.Now)
	config.Registerer.MustRegister(newTriggerSeries(last, config.Signals))
	return &Server{
		evaluator: &evaluator{config: config, last: last}, now: config.Now, logger: config.Logger,
		watches: newWatches(config.MaxStreamsPerNamespace), queue: newChangeQueue(),
		metrics: newMetrics(config.Registerer, last.held),
	}
}

// IsActive returns whether the trigger needs at least one replica.
func (s *Server) IsActive(_ context.Context, ref *pb.ScaledObjectRef) (*pb.IsActiveResponse, error) {
	trigger, err := decode(ref)
	if err != nil {
		return nil, err
	}
	evaluated := s.evaluator.evaluate(trigger, s.now())
	if evaluated.err != nil {
		return nil, evaluated.err
	}
	return &pb.IsActiveResponse{Result: evaluated.sample.Active}, nil
}

// GetMetricSpec names the metric of the trigger and its target. It does not fail once it has succeeded, nor for invalid
// metadata, because KEDA would only log an error.
func (s *Server) GetMetricSpec(_ context.Context, ref *pb.ScaledObjectRef) (*pb.GetMetricSpecResponse, error) {
	trigger, err := decode(ref)
	if err != nil {
		return invalidMetricSpec(err), nil
	}
	spec, err := s.evaluator.spec(trigger, s.now())
	if err != nil {
		return nil, err
	}
	return spec.response(), nil
}

// GetMetrics returns the value of the trigger's metric.
func (s *Server) GetMetrics(_ context.Context, request *pb.GetMetricsRequest) (*pb.GetMetricsResponse, error) {
	trigger, err := decode(request.GetScaledObjectRef())
	if err != nil {
		return nil, err
	}
	if metric := metricOf(trigger); request.GetMetricName() != metric {
		return nil, response.Errorf(response.Invalid,
			"no metric %q: this trigger has %s, which KEDA requests without its prefix s<index>-",
			request.GetMetricName(), metric)
	}
	evaluated := s.evaluator.evaluate(trigger, s.now())
	if evaluated.err != nil {
		return nil, evaluated.err
	}
	return evaluated.sample.response(), nil
}

func decode(ref *pb.ScaledObjectRef) (Trigger, error) {
	return Decode(types.NamespacedName{Namespace: ref.GetNamespace(), Name: ref.GetName()}, ref.GetScalerMetadata())
}

// Signals reads measurements from the cache.
type Signals interface {
	// Read returns the reading of the subject's subscription, and starts to track it: backlog.ErrNoData until the first
	// response. A missing object is an API server's NotFound, a connection that may not be used backlog.ErrUnsupported;
	// any other error is why the signal is unknown, as a text for the user.
	Read(subject Subject, now time.Time) (backlog.Reading, error)
}

// ScaledObjects reads the replicas of ScaledObjects from the cache.
type ScaledObjects interface {
	// Replicas returns spec.replicas of the ScaledObject's target, or why it is unknown.
	Replicas(key types.NamespacedName) (int32, error)
}

// statusError is the status for an error; nil and errors of gRPC itself stay as they are. KEDA treats all codes alike,
// and shows the text in the events of the ScaledObject.
func statusError(err error) error {
	if _, isStatus := status.FromError(err); isStatus {
		return err
	}
	return status.Error(codeOf(response.ReasonOf(err)), response.Text(err))
}

func codeOf(reason response.Reason) codes.Code {
	switch reason {
	case response.NotFound:
		return codes.NotFound
	case response.Invalid:
		return codes.InvalidArgument
	case response.Unsupported:
		return codes.FailedPrecondition
	case response.Unknown:
		return codes.Unavailable
	case response.TooSlow:
		return codes.DeadlineExceeded
	case response.Busy:
		return codes.ResourceExhausted
	case response.Canceled:
		return codes.Canceled
	default:
		return codes.Internal
	}
}

func unread(subject Subject, err error) error {
	failed := response.Unread(subject.describe(), err)
	if response.ReasonOf(failed) == response.NotFound {
		return response.Errorf(response.NotFound, "%s: create it, or correct the metadata of the trigger", failed)
	}
	return failed
}

// mostTopicsShown bounds a list of topics in a message: the text after it has the fix, and must not be cut off.
const mostTopicsShown = 160

func (s Subject) describe() string {
	switch {
	case s.Policy != "":
		return fmt.Sprintf("AutoscalingPolicy %q in namespace %q", s.Policy, s.Namespace)
	case s.Target.Name != "":
		return fmt.Sprintf("%s %q in namespace %q", s.Target.Kind, s.Target.Name, s.Namespace)
	}
	text := fmt.Sprintf("subscription %q on %s", response.Shorten(s.Subscription, mostShown),
		response.Shorten(s.Topics, mostTopicsShown))
	if s.Component.Name != "" {
		text = s.Component.String()
	}
	if s.Connection != "" {
		text += fmt.Sprintf(" of connection %q", s.Connection)
	}
	return text
}

// invalidEnds a text to which KEDA adds " defined multiple times in ScaledObject <name>".
const invalidEnds = ". Correct the trigger: KEDA reports this as a metric"

// invalidMetricSpec is the response to GetMetricSpec for invalid metadata. KEDA only logs an error of that call. But it
// puts the name of a metric that is defined twice into condition Ready of the ScaledObject (ScaledObjectCheckFailed),
// creates no HorizontalPodAutoscaler and does not poll until the ScaledObject changes.
//
// Source: KEDA 2.21, controllers/keda/hpa.go, getScaledObjectMetricSpecs.
func invalidMetricSpec(err error) *pb.GetMetricSpecResponse {
	spec := &pb.MetricSpec{MetricName: err.Error() + invalidEnds, TargetSize: 1, TargetSizeFloat: 1}
	return &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{spec, spec}}
}
