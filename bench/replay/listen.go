// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// timetable has the times, in seconds since the start of the load, at which the adapter polled and scraped and the HPA
// controller requested its metric. They come from the adapter's counters, read every quarter of a second.
type timetable struct {
	// Polls of the topics, Scrapes of the instances, and Syncs, the metric requests of the HPA controller.
	Polls   []float64 `json:"polls"`
	Scrapes []float64 `json:"scrapes"`
	Syncs   []float64 `json:"syncs"`
}

const (
	// listenEvery is the interval at which the counters are read.
	listenEvery = 250 * time.Millisecond
	// apart is the shortest time between two events: requests within two seconds, such as those for two topics or several
	// instances, belong to one event.
	apart = 2.0
)

// tally is a reading of the adapter's counters.
type tally struct{ polls, scrapes, syncs float64 }

// listen reads the adapter's counters until ctx ends. before is the reading at the start of the load. After a failed
// request the next reading counts the missed events as one.
func (e *environment) listen(ctx context.Context, before tally, begun time.Time) timetable {
	var heard timetable
	ticker := time.NewTicker(listenEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return heard
		case <-ticker.C:
		}
		if now, err := e.counted(ctx); err == nil {
			heard.add(time.Since(begun).Seconds(), before, now)
			before = now
		}
	}
}

// counted reads the adapter's counters.
func (e *environment) counted(ctx context.Context) (tally, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	text, err := e.scene.Ask(ctx, e.scene.Adapter, "/metrics")
	if err != nil {
		return tally{}, err
	}
	return count(text)
}

// add adds the events since the previous reading, at the middle of the interval.
func (t *timetable) add(seconds float64, before, now tally) {
	at := max(0, seconds-listenEvery.Seconds()/2)
	note := func(times *[]float64, grew bool) {
		if grew && (len(*times) == 0 || at-(*times)[len(*times)-1] > apart) {
			*times = append(*times, at)
		}
	}
	note(&t.Polls, now.polls > before.polls)
	note(&t.Scrapes, now.scrapes > before.scrapes)
	note(&t.Syncs, now.syncs > before.syncs)
}

// count parses the adapter's counters.
func count(text []byte) (tally, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return tally{}, fmt.Errorf("reading the adapter's counters: %w", err)
	}
	sum := func(family, call string) (all float64) {
		for _, metric := range families[family].GetMetric() {
			matches := call == ""
			for _, label := range metric.GetLabel() {
				matches = matches || label.GetName() == "call" && strings.Contains(label.GetValue(), call)
			}
			if matches {
				all += metric.GetCounter().GetValue()
			}
		}
		return all
	}
	return tally{
		polls:   sum("pulsar_autoscaler_source_requests_total", "stats"),
		scrapes: sum("pulsar_autoscaler_instance_scrapes_total", ""),
		syncs:   sum("pulsar_autoscaler_provider_requests_total", ""),
	}, nil
}

// known reports whether every kind of event was recorded. Without one of them nothing would be decided.
func (t timetable) known() bool { return len(t.Polls) > 0 && len(t.Scrapes) > 0 && len(t.Syncs) > 0 }

// check checks that the times rise, within the longest run of a report.
func (t timetable) check() error {
	for name, times := range map[string][]float64{"polls": t.Polls, "scrapes": t.Scrapes, "syncs": t.Syncs} {
		before := 0.0
		for _, at := range times {
			if !(at >= before && at <= longest) {
				return fmt.Errorf("measured.timetable.%s has %g after %g: they must rise from 0 to %d", name, at, before, longest)
			}
			before = at
		}
	}
	return nil
}
