// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

const (
	// maxPoints of one request: Prometheus refuses more than 11,000.
	maxPoints = 10_000
	tries     = 3
	firstWait = time.Second
)

// querier evaluates expressions of one time.
type querier struct {
	api      v1.API
	from, to time.Time
	step     time.Duration
	// wait before the second try; twice as long before the third.
	wait time.Duration
}

// samples of one signal by time in Unix milliseconds; what is no finite number is not in it.
type samples map[int64]float64

// find evaluates the expressions in turn, and returns the samples of the first that has some.
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
			return nil, fmt.Errorf("querying %s: the answer has %d series instead of one", expression, len(matrix))
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

// part is one request, sent again when the server or the way to it failed.
func (q querier) part(ctx context.Context, expression string, r v1.Range) (model.Matrix, error) {
	wait := q.wait
	for try := 1; ; try++ {
		value, _, _, err := q.api.QueryRange(ctx, expression, r)
		if err == nil {
			matrix, isMatrix := value.(model.Matrix)
			if !isMatrix {
				return nil, fmt.Errorf("the answer is %T instead of a matrix", value)
			}
			return matrix, nil
		}
		if try == tries || !isTransient(err) || ctx.Err() != nil {
			return nil, explain(err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C:
			wait *= 2
		}
	}
}

// isTransient says whether another try may do better: a client's mistake stays one.
func isTransient(err error) bool {
	var answered *v1.Error
	return !errors.As(err, &answered) ||
		slices.Contains([]v1.ErrorType{v1.ErrServer, v1.ErrTimeout, v1.ErrBadResponse}, answered.Type)
}

// explain adds what to do about an error that the server sent.
func explain(err error) error {
	var answered *v1.Error
	if errors.As(err, &answered) && answered.Type == v1.ErrClient {
		return fmt.Errorf("%w: check the URL and the credentials of Prometheus", err)
	}
	return err
}

// times are those of samples, ascending.
func (s samples) times() []int64 {
	all := make([]int64, 0, len(s))
	for at := range s {
		all = append(all, at)
	}
	slices.Sort(all)
	return all
}
