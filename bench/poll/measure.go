// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// contender keeps the state of the topics fresh while it runs.
type contender interface {
	run(ctx context.Context) error
	// measuredAt is when the known state of a topic was measured; false without any.
	measuredAt(topic int, now time.Time) (time.Time, bool)
}

// The names of the contenders.
const (
	nameOurs       = "ours"
	namePerTrigger = "per_trigger"
)

func newContender(name string, s setting, admin string) (contender, error) {
	switch name {
	case nameOurs:
		return newOurs(s, admin)
	case namePerTrigger:
		return newPerTrigger(s, admin), nil
	default:
		return nil, fmt.Errorf("contender is %q: it must be %s or %s", name, nameOurs, namePerTrigger)
	}
}

// pace is how long to warm up and to measure, in intervals, and how many samples to take within one.
type pace struct{ warmUp, measured, looks int }

// figures are what one contender process measured of itself.
type figures struct {
	RequestsPerSecond float64 `json:"requests_per_second"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
	// CPUSeconds of 1,000 functions with one topic each, per minute.
	CPUSeconds float64 `json:"cpu_seconds_per_1k_functions_minute"`
	// Memory of the process from the system, at the end.
	Memory uint64 `json:"memory_bytes"`
	// Freshness is the age of the data; a topic without any is as old as the process.
	Freshness float64 `json:"freshness_p99_seconds"`
	// Unknown is how many samples had no data.
	Unknown int `json:"unknown_looks"`
	// UnknownRequests are requests that the broker does not know; must be 0.
	UnknownRequests int64 `json:"unknown_requests"`
}

// measurement is one contender against the broker at the URL admin.
type measurement struct {
	contender contender
	setting   setting
	admin     string
	pace      pace
}

// run measures, and writes the figures as JSON.
func (m measurement) run(ctx context.Context, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.contender.run(ctx) })
	var measured figures
	group.Go(func() (err error) {
		defer stop()
		measured, err = m.observe(ctx)
		return err
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if err := json.NewEncoder(out).Encode(measured); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

// observe waits for the contender's warm-up, and then samples its data and its cost.
func (m measurement) observe(ctx context.Context) (figures, error) {
	s, p := m.setting, m.pace
	started := time.Now()
	if err := command.Pause(ctx, time.Duration(p.warmUp)*s.Interval); err != nil {
		return figures{}, err
	}
	before, err := readTraffic(ctx, m.admin)
	if err != nil {
		return figures{}, err
	}
	cpuBefore, from := cpuTime(), time.Now()
	ages := make([]float64, 0, p.measured*p.looks*s.Topics)
	unknown := 0
	for range p.measured * p.looks {
		if err := command.Pause(ctx, s.Interval/time.Duration(p.looks)); err != nil {
			return figures{}, err
		}
		now := time.Now()
		for i := range s.Topics {
			at, known := m.contender.measuredAt(i, now)
			if !known {
				at = started
				unknown++
			}
			ages = append(ages, now.Sub(at).Seconds())
		}
	}
	elapsed := time.Since(from)
	after, err := readTraffic(ctx, m.admin)
	if err != nil {
		return figures{}, err
	}
	slices.Sort(ages)
	freshness, _ := output.Quantile(ages, len(ages), 0.99) // there is an age: -measured and -topics are at least 1
	minutes, thousands := elapsed.Minutes(), float64(s.Topics)/1000
	return figures{
		RequestsPerSecond: float64(after.Requests-before.Requests) / elapsed.Seconds(),
		BytesPerSecond:    float64(after.Bytes-before.Bytes) / elapsed.Seconds(),
		CPUSeconds:        (cpuTime() - cpuBefore).Seconds() / minutes / thousands,
		Memory:            memory(cap(ages)),
		Freshness:         freshness,
		Unknown:           unknown,
		UnknownRequests:   after.Unknown,
	}, nil
}

// cpuTime of this process, in user and system mode.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(fmt.Sprintf("reading the process's own usage: %v", err)) // RUSAGE_SELF cannot fail
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// memory is what the process has from the system after a collection, without the ages that the benchmark itself keeps.
func memory(ages int) uint64 {
	debug.FreeOSMemory()
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	const bytesPerAge = 8
	own := uint64(ages) * bytesPerAge //nolint:gosec // a count
	held := samples[0].Value.Uint64() - samples[1].Value.Uint64()
	runtime.KeepAlive(samples)
	return held - min(held, own)
}
