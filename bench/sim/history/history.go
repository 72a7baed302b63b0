// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/compare"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
)

// Config configures Read. All but Function's fields are required.
type Config struct {
	Server   Server
	Function Function
	// From and To are the period, in steps of Step, which is at least the scrape interval. MaxGap is the longest time
	// without samples.
	From, To     time.Time
	Step, MaxGap time.Duration
}

// The bounds of a Config.
const (
	leastStep = time.Second
	mostStep  = time.Hour
	longest   = 62 * 24 * time.Hour
)

func (c Config) validate() error {
	switch {
	case c.Step < leastStep || c.Step > mostStep || c.Step%time.Millisecond != 0:
		return fmt.Errorf("the step is %s: it must be from %s to %s", c.Step, leastStep, mostStep)
	case c.To.Sub(c.From) < 2*c.Step || c.To.Sub(c.From) > longest:
		return fmt.Errorf("the time is %s long: it must be at least two steps and at most %s", c.To.Sub(c.From), longest)
	case !c.Function.hasTopics() && (c.Function.Policy == "" || c.Function.Namespace == ""):
		return fmt.Errorf("neither topics nor a policy with its namespace are known: name the topics of the Function, or " +
			"the namespace")
	}
	return nil
}

// History is the result of Read.
type History struct {
	Load trace.Load
	// CSV is the load as a file for package trace.
	CSV []byte
	// Capacity and Start are nil if the series do not show them. SeenCapacity is then the most that a replica processed,
	// and 0 without any.
	Capacity, Start *compare.Estimate
	SeenCapacity    float64
	// Sources are the expressions that had samples, with what they measure.
	Sources []string
	signals signals
}

// Late is the share of the time in which the recorded backlog was more than the ready replicas process within the
// objective; nil if unknown.
func (h History) Late(capacity float64, objective time.Duration) *float64 {
	share, known := h.signals.late(capacity, objective)
	if !known {
		return nil
	}
	return &share
}

// Read reads the history of a Function.
func Read(ctx context.Context, c Config) (History, error) {
	if err := c.validate(); err != nil {
		return History{}, err
	}
	api, err := c.Server.connect()
	if err != nil {
		return History{}, err
	}
	// Whole steps of the epoch: the same period always has the same samples.
	q := querier{api: api, from: c.From.Truncate(c.Step), to: c.To.Truncate(c.Step), step: c.Step, wait: firstWait}
	return c.read(ctx, q)
}

func (c Config) read(ctx context.Context, q querier) (History, error) {
	h := History{signals: signals{step: c.Step}}
	var arrivals samples
	f, covered := c.Function, window*c.Step
	for _, one := range []struct {
		name        string
		expressions []string
		to          *samples
	}{
		{"arrivals", f.arrivals(covered), &arrivals},
		{"processed", f.processed(covered), &h.signals.processed},
		{"backlog", f.backlog(), &h.signals.backlog},
		{"replicas", f.replicas(), &h.signals.replicas},
		{"ready replicas", f.ready(), &h.signals.ready},
		{"capacity", f.policySeries("capacity_messages_per_second"), &h.signals.learned},
		{"uncertainty", f.policySeries("capacity_uncertainty_ratio"), &h.signals.uncertainty},
	} {
		found, expression, err := q.find(ctx, one.expressions)
		if err != nil {
			return h, err
		}
		if *one.to = found; expression != "" {
			h.Sources = append(h.Sources, one.name+": "+expression)
		}
	}
	if len(arrivals) == 0 {
		return h, fmt.Errorf("finding the arrivals: Prometheus has none between %s and %s: looked for %s",
			q.from.Format(time.RFC3339), q.to.Format(time.RFC3339), strings.Join(f.arrivals(covered), " and "))
	}
	var err error
	h.CSV = h.signals.csv(arrivals)
	if h.Load, err = trace.Read(bytes.NewReader(h.CSV), c.MaxGap); err != nil {
		return h, fmt.Errorf("reading the arrivals of Prometheus: %w", err)
	}
	capacity, seen, known := h.signals.capacity()
	if h.SeenCapacity = seen; known {
		h.Capacity = &capacity
	}
	if start, known := h.signals.start(); known {
		h.Start = &start
	}
	return h, nil
}

// csv is the load with the replicas that were set, or that were ready if only that is known.
func (s signals) csv(arrivals samples) []byte {
	replicas := s.replicas
	if len(replicas) == 0 {
		replicas = s.ready
	}
	var text bytes.Buffer
	text.WriteString("time,rate,replicas\n")
	for _, at := range arrivals.times() {
		ran := ""
		if value, known := replicas[at]; known {
			ran = strconv.Itoa(int(math.Round(min(value, maxReplicas))))
		}
		fmt.Fprintf(&text, "%s,%s,%s\n", time.UnixMilli(at).UTC().Format(time.RFC3339Nano),
			strconv.FormatFloat(arrivals[at], 'g', 6, 64), ran)
	}
	return text.Bytes()
}

const maxReplicas = 1_000_000
