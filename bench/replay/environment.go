// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/instance"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// drainTimeout is how long the last messages may take after the end of publishing.
const drainTimeout = 3 * time.Minute

// environment is the stage with the readers that sample it.
type environment struct {
	scene      *stage.Stage
	source     *pulsar.Source
	scraper    *instance.Scraper
	roster     *roster
	kubernetes string
	progress   io.Writer
}

// open starts the stage with shipped intervals: polls every 10 s, HPA syncs every 15 s. It lasts until end.
func open(ctx context.Context, progress io.Writer) (_ *environment, end func(), err error) {
	bins, err := binaries.BuildControlPlane(ctx, progress)
	if err != nil {
		return nil, nil, err
	}
	scene, end, err := testbed.Open(ctx, stage.Config{Progress: progress})
	if err != nil {
		return nil, nil, err
	}
	e := &environment{scene: scene, roster: &roster{}, kubernetes: bins.KubernetesVersion, progress: progress}
	if err := e.equip(); err != nil {
		end()
		return nil, nil, err
	}
	return e, end, nil
}

// equip creates the readers: instances of the product's own, separate from the adapter's.
func (e *environment) equip() error {
	admin, err := url.Parse(e.scene.Broker.AdminURL())
	if err != nil {
		return fmt.Errorf("reading the broker's admin URL: %w", err)
	}
	if e.source, err = pulsar.New(pulsar.Config{
		Registerer:   prometheus.NewRegistry(),
		AllowedHosts: []string{admin.Host},
	}); err != nil {
		return err
	}
	e.scraper, err = instance.New(instance.Config{Registerer: prometheus.NewRegistry(), Addresses: e.roster})
	return err
}

func (e *environment) report() report {
	return report{
		Pulsar: e.scene.Broker.Version(), Kubernetes: e.kubernetes, Processors: runtime.NumCPU(),
		Begun: time.Now().UTC().Truncate(time.Second), Scenarios: []result{},
	}
}

// play runs a scenario on real parts, from the creation of the Function to the last message.
func (e *environment) play(ctx context.Context, s scenario) (_ outcome, err error) {
	config := s.function()
	config.Progress = e.progress
	f, err := e.scene.AddFunction(ctx, config)
	if err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, f.Remove(ctx)) }()
	before, err := e.counted(ctx)
	if err != nil {
		return outcome{}, err
	}
	if err := e.scene.Client.Create(ctx, s.policy()); err != nil {
		return outcome{}, fmt.Errorf("creating the policy: %w", err)
	}
	o := outcome{scenario: s, begun: time.Now()}
	loading, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return f.Publish(loading, s.shape(s.scale)) })
	group.Go(func() error {
		o.timetable = e.listen(loading, before, o.begun)
		return nil
	})
	watcher := e.watch(f, o.begun)
	err = watcher.until(ctx, s.length)
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return outcome{}, err
	}
	o.ended = o.begun.Add(s.length)
	o.looks, o.counts = watcher.looks, watcher.counts
	if o.policy, err = f.Policy(ctx); err != nil {
		return outcome{}, err
	}
	if err := testbed.Drain(ctx, f, drainTimeout); err != nil {
		return outcome{}, err
	}
	o.timeline = e.scene.Mesh.Timeline(stage.Namespace, s.name)
	o.published = f.Published()
	o.done, o.late = f.Score.Totals()
	o.repeated = f.Score.Repeated()
	o.last = watcher.last(ctx)
	return o, ctx.Err()
}
