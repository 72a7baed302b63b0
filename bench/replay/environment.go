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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// drainTimeout is how long the last messages may take when nothing is published any more.
	drainTimeout = 3 * time.Minute
	drainPoll    = 200 * time.Millisecond
	// crashLines of the log of a server that ended by itself are shown.
	crashLines = 30
)

// environment is the stage with what looks at it.
type environment struct {
	scene      *stage.Stage
	source     *pulsar.Source
	scraper    *instance.Scraper
	roster     *roster
	kubernetes string
	progress   io.Writer
}

// open sets the stage with every interval as it ships: polls each 10 s, HPA syncs each 15 s. What it starts ends with
// ctx only while it opens; afterwards end ends it, in order.
func open(ctx context.Context, progress io.Writer) (_ *environment, end func(), err error) {
	bins, err := cluster.Binaries(ctx, progress)
	if err != nil {
		return nil, nil, err
	}
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, cancel)
	scene, err := stage.Open(lifetime, stage.Config{Progress: progress})
	release()
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("setting the stage: %w", err)
	}
	end = func() { scene.Close(); cancel() }
	e := &environment{scene: scene, roster: &roster{}, kubernetes: bins.KubernetesVersion, progress: progress}
	if err := e.equip(); err != nil {
		end()
		return nil, nil, err
	}
	return e, end, nil
}

// equip makes what looks: the product's own readers, apart from the adapter's.
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

// play runs a scenario on real parts, from the Function to the last message.
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
	group.Go(func() error { return f.Publish(loading, s.profile()) })
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
	if err := drain(ctx, f); err != nil {
		return outcome{}, err
	}
	o.timeline = e.scene.Mesh.Timeline(stage.Namespace, s.name)
	o.published = f.Published()
	o.done, o.late = f.Score.Totals()
	o.repeated = f.Score.Repeated()
	if last := watcher.ask(ctx, time.Since(o.begun)); last.topic != nil {
		o.last = last.topic
	}
	return o, nil
}

// drain waits for the last messages. That some are left when time is up is for the score to tell.
func drain(ctx context.Context, f *stage.Function) error {
	limited, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	err := cluster.WaitFor(limited, "the last messages", drainPoll, func(context.Context) (bool, string, error) {
		done, _ := f.Score.Totals()
		return int64(done) >= f.Published(), fmt.Sprint(done, " done"), nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// crashed says which server has ended by itself.
func (e *environment) crashed() error {
	select {
	case <-e.scene.Broker.Done():
		return fmt.Errorf("the broker has ended by itself; it printed:\n%s", e.scene.Broker.LogTail(crashLines))
	default:
	}
	for _, name := range []string{cluster.Etcd, cluster.APIServer, cluster.ControllerManager} {
		component := e.scene.Cluster.Component(name)
		select {
		case <-component.Done():
			return fmt.Errorf("%s has ended by itself; it printed:\n%s", name, component.LogTail(crashLines))
		default:
		}
	}
	return nil
}
