// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
)

// LatencySource is the origin of latencies.
type LatencySource string

// The sources of latencies.
const (
	// Output: each result was read from the output topic.
	Output LatencySource = "Output"
	// PolicyWait: each message has the wait in the status of the policy when it was published.
	PolicyWait LatencySource = "PolicyWait"
	// Processing: each message until its processing ended, as the replicas of the demo report it.
	Processing LatencySource = "Processing"
)

// subject is the measured workload: the Function of a contender, or a target.
type subject struct {
	name, setting string
	// run identifies the messages.
	run string
	// input gets the load. output has the results; empty if the wait of the policy counts.
	input, output string
	// isTarget is true if the topics are the user's. Messages published before the run do not count.
	isTarget bool
	// stages are one Function after the other.
	stages    []stage
	objective time.Duration
}

// stage is a Function.
type stage struct {
	// input of its subscription, which is empty for a target: that may process messages without a result.
	input, subscription string
	// scaled has the replicas, and policy scales it; policy is empty for contenders without one.
	scaled *unstructured.Unstructured
	policy client.ObjectKey
}

// subject returns the workload of a contender.
func (e entrant) subject() subject {
	s := subject{
		name: e.Name, setting: e.setting(), run: e.run + "-" + e.Name, input: e.input(),
		objective: e.scenario.Objective(),
	}
	for _, one := range e.stages() {
		s.output = one.output()
		added := stage{input: one.input(), subscription: one.function(), scaled: one.workload()}
		if e.Policy != nil {
			added.policy = client.ObjectKey{Namespace: e.namespace, Name: one.function()}
		}
		s.stages = append(s.stages, added)
	}
	return s
}

// gauge counts messages for samples.
type gauge struct {
	publisher *load.Publisher
	// meter is nil without an output.
	meter *load.Meter
	// waits has each message of a target with the wait of its policy; nil without a target. counted is the number of
	// published messages that it has seen.
	waits   *load.Tally
	counted int64
}

// read completes a sample. Messages published since the previous sample get the wait of this one.
func (g *gauge) read(s Sample) Sample {
	if s.WaitSeconds != nil && g.waits != nil {
		wait := time.Duration(*s.WaitSeconds * float64(time.Second))
		for number := g.counted + 1; number <= s.Published; number++ {
			g.waits.Record(uint64(number), wait) //nolint:gosec // counts up from 1
		}
	}
	g.counted = s.Published
	if g.meter == nil {
		s.P50Seconds = s.WaitSeconds
		return s
	}
	s.Done = new(g.meter.Counts().Done)
	if recent := g.meter.Recent(); recent.Count > 0 {
		s.P50Seconds = new(recent.P50.Seconds())
	}
	return s
}

// latencies completes a contender with the latencies of its results. A target without results has the waits of its
// policy.
func (g *gauge) latencies(due int64, c Contender, isTarget bool) Contender {
	if g.meter != nil && (!isTarget || g.meter.Counts().Done > 0) {
		c.Messages, c.LatencyFrom = load.NewResult(due, g.publisher, g.meter), Output
		return c
	}
	c.Messages, c.LatencyFrom = load.NewEstimate(due, g.publisher, g.waits), PolicyWait
	c.Samples = slices.Clone(c.Samples)
	for i := range c.Samples {
		c.Samples[i].Done, c.Samples[i].P50Seconds = nil, c.Samples[i].WaitSeconds
	}
	return c
}

// gauge returns the gauge that publishes to a subject and measures it.
func (r *runner) gauge(pulsarClient pulsar.Client, s subject) (g *gauge, closeAll func(), err error) {
	g = &gauge{}
	if s.isTarget {
		g.waits = load.NewTally(s.objective)
	}
	g.publisher, err = load.NewPublisher(pulsarClient, load.Publishing{
		Topic: s.input, Run: s.run, Messages: r.Scenario.Messages, Seed: r.Scenario.Load.Seed,
	})
	if err != nil || s.output == "" {
		return g, func() { g.publisher.Close() }, err
	}
	g.meter, err = load.NewMeter(pulsarClient, load.Metering{
		Topic: s.output, Run: s.run, Objective: s.objective, FromNow: s.isTarget,
	})
	if err != nil {
		g.publisher.Close()
		return nil, nil, err
	}
	return g, func() { g.publisher.Close(); g.meter.Close() }, nil
}

// measure publishes the load to a subject and samples it.
func (r *runner) measure(ctx context.Context, pulsarClient pulsar.Client, s subject) (Contender, error) {
	g, closeAll, err := r.gauge(pulsarClient, s)
	if err != nil {
		return Contender{}, err
	}
	defer closeAll()
	begun := time.Now()
	watchAfter := r.Scenario.WatchAfter.Duration
	r.tell("%s: publishing for %s, then watching for %s", s.name, r.Schedule.End(), watchAfter)
	length := r.Schedule.End() + watchAfter
	watching, stop := context.WithTimeout(ctx, length)
	defer stop()
	c := Contender{Name: s.name, Setting: s.setting}
	stalls := stall{after: max(stallAfter, 3*r.Scenario.Function.ServiceTime.Duration)}
	group, grouped := errgroup.WithContext(watching)
	group.Go(func() error { return g.publisher.Run(grouped, r.Schedule.Arrivals()) })
	if g.meter != nil {
		group.Go(func() error { return g.meter.Run(grouped) })
	}
	group.Go(func() error {
		c.Samples = watch(grouped, func(ctx context.Context) Sample {
			sample := observe(ctx, r.Kube, s)
			sample.Published = g.publisher.Published()
			sample.Seconds = time.Since(begun).Seconds()
			sample = g.read(sample)
			if !s.isTarget && c.Stalled == "" && stalls.isAt(sample) {
				c.Stalled = r.stalled(ctx, s, sample, stalls.after)
			}
			return sample
		})
		return nil
	})
	if r.Break != nil {
		group.Go(func() error { return r.outage(grouped) })
	}
	if err := group.Wait(); err != nil {
		return Contender{}, fmt.Errorf("%s: %w", s.name, err)
	}
	if ctx.Err() != nil {
		return Contender{}, context.Cause(ctx)
	}
	c = g.latencies(r.due(), c, s.isTarget)
	c.Begun, c.Redelivered = begun.UTC(), r.redelivered(ctx, s)
	if c.Usage, err = UsageOf(c.Samples, length.Seconds()); err != nil {
		return Contender{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return c, nil
}

// outage stops the answers of the admin service for its time. Contenders side by side have the same outage.
func (r *runner) outage(ctx context.Context) error {
	outage := r.Scenario.Local.Outage
	if err := command.Pause(ctx, outage.At.Duration); err != nil {
		return nil //nolint:nilerr // the run ended before the outage
	}
	if err := r.Break(true); err != nil {
		return err
	}
	_ = command.Pause(ctx, outage.For.Duration) // the end of ctx ends the outage
	return r.Break(false)
}
