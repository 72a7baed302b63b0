// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Bounds of Config.HoldFor.
const leastHoldFor, mostHoldFor = time.Minute, 24 * time.Hour

// Config is what New needs; all fields are required.
type Config struct {
	Policies      Policies
	DecisionMaker DecisionMaker
	Signals       Signals
	ScaledObjects ScaledObjects
	// Now is the time, such as time.Now.
	Now func() time.Time
	// HoldFor is how long the last answer that was known is given while nothing is, from 1m to 24h.
	HoldFor time.Duration
	// Logger logs when triggers begin and end to be unknown.
	Logger *slog.Logger
	// Registerer takes the metrics about answering.
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
	}
	return nil
}

// Server answers KEDA, from the cache. It is safe for concurrent use. Run must run for streams to say
// what changes.
type Server struct {
	pb.UnimplementedExternalScalerServer

	config   Config
	last     *lastAnswers
	watches  *watches
	queue    *changeQueue
	observed *requestMetrics
	// drained is closed when Run ends.
	drained chan struct{}

	// mu guards deadSince.
	mu sync.Mutex
	// deadSince is since when no decision maker was seen alive; zero while one is.
	deadSince time.Time
}

// New checks the configuration and registers the metrics.
func New(config Config) (*Server, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	s := &Server{
		config: config, last: newLastAnswers(config.HoldFor, maxTriggers, config.Now),
		watches: newWatches(), queue: newChangeQueue(),
		drained: make(chan struct{}),
	}
	observed, err := newRequestMetrics(config.Registerer, s.last.held)
	if err != nil {
		return nil, fmt.Errorf("keda: %w", err)
	}
	s.observed = observed
	return s, nil
}

// IsActive says whether there must be a replica.
func (s *Server) IsActive(_ context.Context, ref *pb.ScaledObjectRef) (*pb.IsActiveResponse, error) {
	trigger, err := decode(ref)
	if err != nil {
		return nil, statusError(err)
	}
	answer := s.answer(trigger, s.config.Now())
	if answer.err != nil {
		return nil, statusError(answer.err)
	}
	return &pb.IsActiveResponse{Result: answer.sample.Active}, nil
}

// GetMetricSpec names the metric of the trigger and its target. It does not fail once it has worked. Metadata that are
// wrong get their refusal, for KEDA shows the user no error of this call.
func (s *Server) GetMetricSpec(_ context.Context, ref *pb.ScaledObjectRef) (*pb.GetMetricSpecResponse, error) {
	trigger, err := decode(ref)
	if err != nil {
		return refusal(err), nil
	}
	spec, err := s.spec(trigger, s.config.Now())
	if err != nil {
		return nil, statusError(err)
	}
	return spec.response(), nil
}

// GetMetrics returns the value of the trigger's metric.
func (s *Server) GetMetrics(_ context.Context, request *pb.GetMetricsRequest) (*pb.GetMetricsResponse, error) {
	trigger, err := decode(request.GetScaledObjectRef())
	if err != nil {
		return nil, statusError(err)
	}
	if metric := metricOf(trigger); request.GetMetricName() != metric {
		return nil, statusError(newFault(errMetric,
			"no metric %q: this trigger has %s, which KEDA asks for without its prefix s<index>-",
			request.GetMetricName(), metric))
	}
	answer := s.answer(trigger, s.config.Now())
	if answer.err != nil {
		return nil, statusError(answer.err)
	}
	return answer.sample.response(), nil
}

// decode the metadata of a trigger, once.
func decode(ref *pb.ScaledObjectRef) (Trigger, error) {
	return Decode(types.NamespacedName{Namespace: ref.GetNamespace(), Name: ref.GetName()}, ref.GetScalerMetadata())
}

// answer is what is known of the trigger now, or was known last.
func (s *Server) answer(t Trigger, now time.Time) resolved {
	found, err := sample(t, s.collect(t, now))
	result := s.last.resolve(t, found, err, now)
	if result.isTransition() {
		s.report(t, result, now)
	}
	if err != nil && result.standing == held {
		replicas, noReplicas := s.config.ScaledObjects.Replicas(t.Object)
		result.sample, result.err = result.sample.keep(replicas, noReplicas, err)
	}
	return result
}

// collect reads what the answer follows from, from the cache.
func (s *Server) collect(t Trigger, now time.Time) facts {
	f := facts{now: now}
	if t.Subject.Policy != "" {
		if f.policy, f.noPolicy = s.policy(t); f.noPolicy != nil {
			return f
		}
	}
	switch {
	case t.followsPolicy():
		f.deadSince, f.undecided = s.undecided(now)
	default:
		f.reading, f.noReading = s.config.Signals.Read(t.Subject, now)
		if t.Strategy == v1alpha1.StrategyUtilization || lost(f) { // costly, and not needed else
			f.replicas, f.noReplicas = s.config.ScaledObjects.Replicas(t.Object)
		}
	}
	return f
}

func (s *Server) policy(t Trigger) (*v1alpha1.AutoscalingPolicy, error) {
	return s.config.Policies.Policy(types.NamespacedName{Namespace: t.Subject.Namespace, Name: t.Subject.Policy})
}

// undecided is since when no decision maker was seen alive, and why; nil while one is.
func (s *Server) undecided(now time.Time) (since time.Time, why error) {
	err := s.config.DecisionMaker.Alive(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	var aged interface{ Since() time.Time }
	switch {
	case err == nil:
		s.deadSince = time.Time{}
	case errors.As(err, &aged) && !aged.Since().IsZero():
		s.deadSince = aged.Since()
	case s.deadSince.IsZero():
		s.deadSince = now
	}
	return s.deadSince, err
}

// spec is what KEDA is to divide by now, or was last.
func (s *Server) spec(t Trigger, now time.Time) (Spec, error) {
	if !t.borrowsThreshold() {
		return specOf(t, nil)
	}
	p, err := s.policy(t)
	if err != nil {
		return s.last.resolveSpec(t, Spec{}, unread(t.Subject, err), now)
	}
	spec, err := specOf(t, p)
	return s.last.resolveSpec(t, spec, err, now)
}

// report logs how what is known of a trigger has changed.
func (s *Server) report(t Trigger, result resolved, now time.Time) {
	log := s.config.Logger.With("scaledObject", t.Object.String(), "subject", t.Subject.describe(), "metric", metricOf(t))
	switch result.standing {
	case held:
		log.Warn("trigger is unknown, holding its last answer", "heldFor", s.config.HoldFor.String(),
			"since", result.since.UTC().Format(time.RFC3339), "reason", result.why)
	case misconfigured:
		log.Error("trigger names what does not exist, answering with an error",
			"reason", result.why)
	case expired:
		log.Error("trigger was unknown for too long, answering with an error",
			"unknownFor", now.Sub(result.since).Truncate(time.Second).String(), "reason", result.why)
	default:
		log.Info("trigger is known again")
	}
}
