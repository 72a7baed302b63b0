// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// coverage is the share of a saturated Java instance's time that its own metric accounts for, for calls of one length.
// Nil is unknown.
type coverage struct {
	// CallMillis is the mean length of a call by the metric.
	CallMillis *float64 `json:"call_ms"`
	// Busy is the share of time within calls, and OverheadMillis the time between two calls.
	Busy           *float64 `json:"busy"`
	OverheadMillis *float64 `json:"overhead_ms"`
}

const (
	coverageName = "coverage"
	// coverageWindow is the length of a measurement. Each length of a call gets coverageWindows of them.
	coverageWindow  = 2 * time.Second
	coverageWindows = 5
	// fillRate is in messages per second.
	fillRate = 4000
)

// coverageTimes are lengths of a call. The longest comes first, so that the start of the instance does not slow down
// prefetching.
func coverageTimes() []time.Duration {
	return []time.Duration{
		20 * time.Millisecond, 10 * time.Millisecond, 5 * time.Millisecond, 2 * time.Millisecond,
		time.Millisecond,
	}
}

// coverageMessages is more than an instance can process in a measurement.
func coverageMessages() int64 {
	messages := 2000.0
	for _, cost := range coverageTimes() {
		messages += 1.5 * (coverageWindows + 1) * coverageWindow.Seconds() / cost.Seconds()
	}
	return int64(messages)
}

// cover measures one saturated Java instance, for calls of several lengths.
func (e *environment) cover(ctx context.Context) (_ []coverage, err error) {
	topic := broker.TopicName(coverageName + "-in")
	if err := e.scene.Broker.CreateTopic(ctx, topic, 0); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.scene.Broker.DeleteTopic(ctx, topic)) }()
	if err := e.fill(ctx, topic); err != nil {
		return nil, err
	}
	runner, err := replica.NewJava(ctx, replica.JavaConfig{Dist: e.scene.Broker.Dist(), Progress: e.progress})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, runner.Close()) }()
	one, err := runner.Start(ctx, replica.Instance{
		Tenant: "public", Namespace: "default", Name: coverageName, Topics: []string{topic},
		ServiceURL: e.scene.Broker.ServiceURL(), ServiceTime: coverageTimes()[0],
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, one.Stop(context.WithoutCancel(ctx))) }()
	select {
	case <-one.Ready():
	case <-one.Done():
		return nil, errors.New("the function instance ended by itself")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	metrics, err := url.Parse(one.MetricsURL())
	if err != nil {
		return nil, fmt.Errorf("reading the address of the metrics: %w", err)
	}
	e.roster.pods = []backlog.InstanceAddress{{ID: coverageName, HostPort: metrics.Host}}
	var all []coverage
	for _, cost := range coverageTimes() {
		one.SetServiceTime(cost)
		looks, err := e.windows(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, covered(looks))
	}
	return all, nil
}

// fill publishes the messages of a measurement.
func (e *environment) fill(ctx context.Context, topic string) error {
	publisher, err := load.New(load.Config{
		ServiceURL: e.scene.Broker.ServiceURL(), Topic: topic,
		Batching: load.BatchingOn,
	})
	if err != nil {
		return err
	}
	defer publisher.Close()
	length := time.Duration(float64(coverageMessages()) / fillRate * float64(time.Second))
	filling, stop := context.WithTimeout(ctx, length)
	defer stop()
	if err := publisher.Run(filling, load.Constant(fillRate)); err != nil {
		return err
	}
	return ctx.Err()
}

// windows samples the counters of the instance at the edges of every window. It skips the first window.
func (e *environment) windows(ctx context.Context) ([]backlog.InstancesSample, error) {
	var looks []backlog.InstancesSample
	timer := time.NewTimer(coverageWindow)
	defer timer.Stop()
	for range coverageWindows + 1 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
		}
		timer.Reset(coverageWindow)
		sample, err := e.scraper.FetchInstances(ctx, coverageName)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of the instance: %w", err)
		}
		looks = append(looks, sample)
	}
	return looks, nil
}

// covered is the median of the windows between samples of one instance.
func covered(looks []backlog.InstancesSample) coverage {
	var lengths, shares, gaps []float64
	for i := 1; i < len(looks); i++ {
		before, after := looks[i-1], looks[i]
		if len(before.Instances) != 1 || len(after.Instances) != 1 {
			continue
		}
		a, b := before.Instances[0], after.Instances[0]
		elapsed := after.At.Sub(before.At).Seconds()
		if a.Calls == nil || b.Calls == nil || a.BusyTime == nil || b.BusyTime == nil || *b.Calls <= *a.Calls ||
			elapsed <= 0 {
			continue
		}
		calls, busy := float64(*b.Calls-*a.Calls), (*b.BusyTime - *a.BusyTime).Seconds()
		lengths, shares = append(lengths, 1000*busy/calls), append(shares, busy/elapsed)
		gaps = append(gaps, 1000*(elapsed-busy)/calls)
	}
	if len(shares) == 0 {
		return coverage{}
	}
	return coverage{CallMillis: known(median(lengths)), Busy: known(median(shares)), OverheadMillis: known(median(gaps))}
}
