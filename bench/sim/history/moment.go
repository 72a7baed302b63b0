// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Moment is what the series of a policy say about a time. Names of series are those after the common prefix.
type Moment struct{ series model.Matrix }

// ReadMoment reads the series of a policy at a time.
func ReadMoment(ctx context.Context, s Server, namespace, policy string, at time.Time) (Moment, error) {
	api, err := s.connect()
	if err != nil {
		return Moment{}, err
	}
	expression := fmt.Sprintf(`{__name__=~"%s.+",namespace=%s,policy=%s}`, policyPrefix, strconv.Quote(namespace),
		strconv.Quote(policy))
	q := querier{api: api, wait: firstWait}
	series, err := q.part(ctx, expression, v1.Range{Start: at, End: at, Step: sampled})
	if err != nil {
		return Moment{}, fmt.Errorf("querying %s: %w", expression, err)
	}
	return Moment{series}, nil
}

// IsEmpty reports whether there is no series.
func (m Moment) IsEmpty() bool { return len(m.series) == 0 }

// Value of a series without labels of its own; false if it has no sample.
func (m Moment) Value(name string) (value float64, known bool) {
	for _, series := range m.named(name) {
		for _, pair := range series.Values {
			if one := float64(pair.Value); !known || one > value {
				value, known = one, true
			}
		}
	}
	return value, known
}

// Labels are the values of labels of all series of a name, joined by a slash and sorted.
func (m Moment) Labels(name string, labels ...model.LabelName) (all []string) {
	for _, series := range m.named(name) {
		var values []string
		for _, label := range labels {
			values = append(values, string(series.Metric[label]))
		}
		all = append(all, strings.Join(values, "/"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (m Moment) named(name string) (found model.Matrix) {
	for _, series := range m.series {
		if string(series.Metric[model.MetricNameLabel]) == policyPrefix+name {
			found = append(found, series)
		}
	}
	return found
}
