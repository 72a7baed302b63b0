// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Query evaluates an expression now. What Prometheus notes about it, such as of a rate of a gauge, is an error.
func (s *Server) Query(ctx context.Context, expression string) (model.Vector, error) {
	value, warnings, infos, err := s.api.Query(ctx, expression, time.Now())
	if err := refuse(expression, err, warnings, infos); err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case model.Vector:
		return value, nil
	case *model.Scalar:
		return model.Vector{{Value: value.Value, Timestamp: value.Timestamp}}, nil
	default:
		return nil, fmt.Errorf("querying %s: the answer is a %s: ask for a vector or a scalar", expression, value.Type())
	}
}

// QueryRange evaluates an expression from one time to another, at each step.
func (s *Server) QueryRange(ctx context.Context, expression string, from, to time.Time,
	step time.Duration,
) (model.Matrix, error) {
	value, warnings, infos, err := s.api.QueryRange(ctx, expression, v1.Range{Start: from, End: to, Step: step})
	if err := refuse(expression, err, warnings, infos); err != nil {
		return nil, err
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("querying %s: the answer is a %s: ask for a vector or a scalar", expression, value.Type())
	}
	return matrix, nil
}

func refuse(expression string, err error, warnings v1.Warnings, infos v1.Infos) error {
	switch {
	case err != nil:
		return fmt.Errorf("querying %s: %w", expression, err)
	case len(warnings)+len(infos) > 0:
		return fmt.Errorf("querying %s: Prometheus notes: %v", expression, append([]string(warnings), infos...))
	}
	return nil
}

// Targets are what is scraped, each with its health and last error.
func (s *Server) Targets(ctx context.Context) ([]v1.ActiveTarget, error) {
	result, err := s.api.Targets(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the targets of Prometheus: %w", err)
	}
	return result.Active, nil
}

// Firing are the alerts that fire.
func (s *Server) Firing(ctx context.Context) ([]v1.Alert, error) {
	result, err := s.api.Alerts(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the alerts of Prometheus: %w", err)
	}
	var firing []v1.Alert
	for _, alert := range result.Alerts {
		if alert.State == v1.AlertStateFiring {
			firing = append(firing, alert)
		}
	}
	return firing, nil
}

// RuleErrors are the rules whose last evaluation failed, each with the error.
func (s *Server) RuleErrors(ctx context.Context) ([]string, error) {
	result, err := s.api.Rules(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("listing the rules of Prometheus: %w", err)
	}
	var failed []string
	for _, group := range result.Groups {
		for _, rule := range group.Rules {
			switch rule := rule.(type) {
			case v1.AlertingRule:
				if rule.LastError != "" {
					failed = append(failed, rule.Name+": "+rule.LastError)
				}
			case v1.RecordingRule:
				if rule.LastError != "" {
					failed = append(failed, rule.Name+": "+rule.LastError)
				}
			}
		}
	}
	return failed, nil
}
