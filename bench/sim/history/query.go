// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
)

const (
	// maxPoints of one request: Prometheus refuses more than 11,000.
	maxPoints = 10_000
	tries     = 3
	firstWait = time.Second
)

// querier evaluates expressions over one period.
type querier struct {
	api      v1.API
	from, to time.Time
	step     time.Duration
	// wait is the delay of the second try; the third has twice that.
	wait time.Duration
}

// samples of one signal by time in Unix milliseconds, without NaN and infinities.
type samples map[int64]float64

// find evaluates the expressions in turn, and returns the samples of the first that has any.
func (q querier) find(ctx context.Context, expressions []string) (samples, string, error) {
	for _, expression := range expressions {
		found, err := q.query(ctx, expression)
		if err != nil {
			return nil, "", err
		}
		if len(found) > 0 {
			return found, expression, nil
		}
	}
	return nil, "", nil
}

func (q querier) query(ctx context.Context, expression string) (samples, error) {
	all := samples{}
	for from := q.from; !from.After(q.to); from = from.Add(maxPoints * q.step) {
		to := from.Add((maxPoints - 1) * q.step)
		if to.After(q.to) {
			to = q.to
		}
		matrix, err := q.part(ctx, expression, v1.Range{Start: from, End: to, Step: q.step})
		if err != nil {
			return nil, fmt.Errorf("querying %s: %w", expression, err)
		}
		if len(matrix) > 1 {
			return nil, fmt.Errorf("querying %s: the response has %d series instead of one", expression, len(matrix))
		}
		for _, series := range matrix {
			for _, pair := range series.Values {
				if value := float64(pair.Value); !math.IsNaN(value) && !math.IsInf(value, 0) && value >= 0 {
					all[int64(pair.Timestamp)] = value
				}
			}
		}
	}
	return all, nil
}

// part sends one request, and retries it if the server or the network failed.
func (q querier) part(ctx context.Context, expression string, r v1.Range) (model.Matrix, error) {
	wait := q.wait
	for try := 1; ; try++ {
		value, _, _, err := q.api.QueryRange(ctx, expression, r)
		if err == nil {
			matrix, isMatrix := value.(model.Matrix)
			if !isMatrix {
				return nil, fmt.Errorf("the response is %T instead of a matrix", value)
			}
			return matrix, nil
		}
		if try == tries || !isTransient(err) || ctx.Err() != nil {
			return nil, explain(err)
		}
		if err := command.Pause(ctx, wait); err != nil {
			return nil, err
		}
		wait *= 2
	}
}

// isTransient reports whether a retry may help: a client's mistake stays one.
func isTransient(err error) bool {
	var answered *v1.Error
	return !errors.As(err, &answered) ||
		slices.Contains([]v1.ErrorType{v1.ErrServer, v1.ErrTimeout, v1.ErrBadResponse}, answered.Type)
}

// explain adds the fix to an error.
func explain(err error) error {
	var answered *v1.Error
	if errors.As(err, &answered) && answered.Type == v1.ErrClient {
		return fmt.Errorf("%w: check the URL and the credentials of Prometheus", err)
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return fmt.Errorf("the response is larger than %d MiB: use a shorter time or a larger step", large.Limit>>20)
	}
	return err
}

// times of the samples, ascending.
func (s samples) times() []int64 { return slices.Sorted(maps.Keys(s)) }
