// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/answer"
)

// Bounds of Config.HoldFor.
const leastHoldFor, mostHoldFor = time.Minute, 24 * time.Hour

// Config configures New; all fields are required.
type Config struct {
	Policies      answer.Policies
	DecisionMaker answer.DecisionMaker
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

func (config Config) check() error {
	switch {
	case config.Policies == nil || config.DecisionMaker == nil || config.Signals == nil || config.ScaledObjects == nil:
		return errors.New("keda: Policies, DecisionMaker, Signals and ScaledObjects must be set")
	case config.Now == nil || config.Logger == nil || config.Registerer == nil:
		return errors.New("keda: Now, Logger and Registerer must be set")
	case config.HoldFor < leastHoldFor || config.HoldFor > mostHoldFor:
		return fmt.Errorf("keda: HoldFor is %s, must be from %s to %s", config.HoldFor, leastHoldFor, mostHoldFor)
	case config.MaxStreamsPerNamespace < 1 || config.MaxStreamsPerNamespace > MaxStreams:
		return fmt.Errorf("keda: MaxStreamsPerNamespace is %d, must be from 1 to %d", config.MaxStreamsPerNamespace,
			MaxStreams)
	}
	return nil
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

// New validates the configuration and registers the metrics.
func New(config Config) (*Server, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	last := newLastAnswers(config.HoldFor, maxTriggers, config.Now)
	metrics, err := newMetrics(config.Registerer, last.held)
	if err == nil {
		err = config.Registerer.Register(newTriggerSeries(last, config.Signals))
	}
	if err != nil {
		return nil, fmt.Errorf("keda: %w", err)
	}
	return &Server{
		evaluator: &evaluator{config: config, last: last}, now: config.Now, logger: config.Logger,
		watches: newWatches(config.MaxStreamsPerNamespace), queue: newChangeQueue(), metrics: metrics,
	}, nil
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
		return nil, answer.Errorf(answer.Invalid,
			"no metric %q: this trigger has %s, which KEDA requests without its prefix s<index>-",
			request.GetMetricName(), metric)
	}
	evaluated := s.evaluator.evaluate(trigger, s.now())
	if evaluated.err != nil {
		return nil, evaluated.err
	}
	return evaluated.sample.response(), nil
}

// decode decodes the trigger of a request.
func decode(ref *pb.ScaledObjectRef) (Trigger, error) {
	return Decode(types.NamespacedName{Namespace: ref.GetNamespace(), Name: ref.GetName()}, ref.GetScalerMetadata())
}
