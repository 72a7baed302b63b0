// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// errUnanswered: a request failed or had another response than its metric.
var errUnanswered = errors.New("requests were not answered with the metric")

func main() {
	ctrl.SetLogger(logr.Discard()) // the stage's parts have their own logs
	command.Main("metrics", run)
}

// run runs the whole program.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := command.Flags("metrics", progress)
	path := flags.String("out", "", "file for the numbers as JSON; none when empty")
	if err := command.Parse(flags, args); err != nil {
		return err
	}
	return bench{
		efforts: shippedEfforts(), stage: stage.Config{Progress: progress}, jsonPath: *path, out: out, progress: progress,
	}.run(ctx)
}

// shippedEfforts are one client, 16, about three times the 5 workers that the HorizontalPodAutoscaler controller has by
// default, and 64, below the 100 concurrent requests that an API server accepts on one HTTP/2 connection (apiserver's
// secure_serving.go): more would queue in the client.
func shippedEfforts() []effort {
	const limit = 10 * time.Second
	return []effort{
		{clients: 1, requests: 2000, limit: limit},
		{clients: 16, requests: 5000, limit: limit},
		{clients: 64, requests: 5000, limit: limit},
	}
}

// bench is what to measure, and where to write the results.
type bench struct {
	efforts []effort
	stage   stage.Config
	// jsonPath is a file; empty for none.
	jsonPath      string
	out, progress io.Writer
}

// run measures, writes, and then fails if there was any error.
func (b bench) run(ctx context.Context) error {
	var measured report
	err := onScene(ctx, b.stage, func(ctx context.Context, s *stage.Stage) (err error) {
		measured, err = b.measureAll(ctx, s)
		return err
	})
	if err != nil {
		return err
	}
	return b.write(measured)
}

func (b bench) write(measured report) error {
	if err := measured.writeTable(b.out); err != nil {
		return err
	}
	if err := output.JSON(b.jsonPath, measured); err != nil {
		return err
	}
	if failed := measured.errors(); failed > 0 {
		return fmt.Errorf("%d %w", failed, errUnanswered)
	}
	return nil
}

// measureAll measures each question on each route with each effort, in sequence.
func (b bench) measureAll(ctx context.Context, s *stage.Stage) (report, error) {
	bins, err := binaries.BuildControlPlane(ctx, b.progress)
	if err != nil {
		return report{}, err
	}
	routes, err := newRoutes(ctx, s)
	if err != nil {
		return report{}, err
	}
	if err := awaitServed(ctx, s, routes); err != nil {
		return report{}, err
	}
	measured := report{Kubernetes: bins.KubernetesVersion, Pulsar: s.Broker.Version(), CPUs: runtime.NumCPU()}
	for _, r := range routes {
		for _, q := range questions() {
			for _, e := range b.efforts {
				o, err := measure(ctx, e, func(ctx context.Context) error { return r.ask(ctx, q) })
				if err != nil {
					return report{}, fmt.Errorf("measuring: %w", err)
				}
				if o.because != nil {
					// the report counts them
					_, _ = fmt.Fprintf(b.progress, "%s, %d clients: %d requests failed, such as: %v\n", r.name, e.clients, o.failed,
						o.because)
				}
				manner := r.seen.manner()
				one := result{Route: r.name, Metric: q.metric, Protocol: manner.protocol, ContentType: manner.contentType}
				one.addOutcome(e.clients, o)
				measured.Results = append(measured.Results, one)
			}
		}
	}
	return measured, nil
}
