// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// lookEvery is the interval between samples.
	lookEvery = time.Second
	// lookTimeout bounds the requests of a sample.
	lookTimeout = 3 * time.Second
	// drainTimeout is how long the last messages may take after the end of publishing.
	drainTimeout = 30 * time.Second
)

// demo is one run.
type demo struct {
	options  options
	scenario scenario
	out      io.Writer
	screen   screen
}

func newDemo(o options, out io.Writer, terminal bool) *demo {
	d := &demo{options: o, scenario: full(), out: out, screen: screen{out: out, live: terminal}}
	if o.short {
		d.scenario = short()
	}
	return d
}

// run runs the demo. When it returns, everything has stopped.
func (d *demo) run(ctx context.Context) (r run.Result, err error) {
	bins, err := binaries.BuildControlPlane(ctx, d.out)
	if err != nil {
		return r, err
	}
	scene, err := d.open(ctx)
	if err != nil {
		return r, err
	}
	defer func() {
		d.screen.end()
		output.Printf(d.out, "Stopping everything.\n") // up to 5 s: replicas may finish their message
		scene.Close()
	}()
	f, err := d.prepare(ctx, scene)
	if err != nil {
		return r, err
	}
	p, err := d.play(ctx, scene, f)
	if err != nil {
		return r, err
	}
	p.kubernetes = bins.KubernetesVersion
	if r, err = p.result(); err != nil {
		return r, err
	}
	if err := d.report(r); err != nil {
		return r, err
	}
	if err := failed(r.Verdict); err != nil {
		output.Printf(d.out, "\nThe last lines of the adapter:\n%s\n", scene.Adapter.LogTail())
		return r, err
	}
	if d.options.keep {
		return r, d.keep(ctx, scene, f)
	}
	return r, nil
}

// open starts the stage, which lives until Close.
func (d *demo) open(ctx context.Context) (*stage.Stage, error) {
	output.Printf(d.out, "Starting Pulsar, a Kubernetes control plane and the adapter on this machine ...\n")
	start := time.Now()
	scene, err := stage.OpenApart(ctx, stage.Config{
		HPASyncPeriod: d.scenario.sync, AdapterFlags: d.scenario.flags, Progress: d.out,
	})
	if err != nil {
		return nil, err
	}
	output.Printf(d.out, "... took %.0f s.\n", time.Since(start).Seconds())
	return scene, nil
}

// prepare creates the Function and the policy.
func (d *demo) prepare(ctx context.Context, scene *stage.Stage) (*stage.Function, error) {
	s := d.scenario
	output.Printf(d.out, "\nFunction %s: a %s processes a message in %s, so %.0f messages/s. ",
		functionName, s.replica, s.serviceTime, 1/s.serviceTime.Seconds())
	f, err := scene.AddFunction(ctx, stage.FunctionConfig{
		Name: functionName, Java: s.java, ServiceTime: s.serviceTime, Objective: s.objective, Progress: d.out,
	})
	if err != nil {
		return nil, err
	}
	output.Printf(d.out, "One is running.\nIts complete policy:\n\n%s\n", s.manifest())
	policy, err := s.policy()
	if err != nil {
		return nil, err
	}
	if err := scene.Client.Create(ctx, policy); err != nil {
		return nil, fmt.Errorf("creating the policy: %w", err)
	}
	output.Printf(d.out, "The load: %.0f messages/s, %.0f/s from %s to %s, then %.0f/s again.\n",
		s.low, s.high, clock(s.calm), clock(s.fall()), s.low)
	for _, flag := range s.differs() {
		output.Printf(d.out, "Differs from the default: %s\n", flag)
	}
	output.Printf(d.out, "%s\n", legend)
	return f, nil
}

// play publishes the load and samples the replicas.
func (d *demo) play(ctx context.Context, scene *stage.Stage, f *stage.Function) (played, error) {
	p := played{scenario: d.scenario, pulsar: scene.Broker.Version(), begun: time.Now()}
	loading, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return f.Publish(loading, d.scenario.load()) })
	err := d.watch(ctx, scene, f, p.begun, func(one sample) (enough bool) {
		p.samples = append(p.samples, one)
		return d.scenario.over(p.samples)
	})
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return p, err
	}
	limited, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	err = f.AwaitAllDone(limited)
	p.messages = f.Messages()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return p, nil // messages without a result are in it
	}
	return p, err
}

// report prints the result, and writes it and the page.
func (d *demo) report(r run.Result) error {
	d.screen.end()
	output.Printf(d.out, "\n%s", r.Text(width))
	path := filepath.Join(d.options.out, "result.json")
	if err := output.JSON(path, r); err != nil {
		return err
	}
	html, err := d.draw(r)
	if err != nil {
		return err
	}
	output.Printf(d.out, "\nOpen %s in a browser to read and zoom the charts; %s has all numbers.\n", html, path)
	output.Printf(d.out, "Next, on your own cluster: docs/guides/first-cluster.md, or docs/guides if it has a Pulsar.\n")
	return nil
}

// draw writes the page.
func (d *demo) draw(r run.Result) (html string, err error) {
	html = filepath.Join(d.options.out, "demo.html")
	return html, r.Page().File(html)
}

// redraw writes the page of a run that was recorded.
func (d *demo) redraw() error {
	text, err := os.ReadFile(d.options.from)
	if err != nil {
		return fmt.Errorf("-from: %w", err)
	}
	var r run.Result
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("-from %s: %w", d.options.from, err)
	}
	if len(r.Contenders) == 0 {
		return fmt.Errorf("-from %s: it is no result of a demo", d.options.from)
	}
	_, err = d.draw(r)
	return err
}
