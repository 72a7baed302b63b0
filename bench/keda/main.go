// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the stand-in for Function Mesh would complain on the table otherwise
	command.Main("keda", run)
}

// run writes what it has after every part, so that an interrupted run is not lost.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parseOptions(args, progress)
	if err != nil {
		return err
	}
	r, err := newReport(ctx, o, progress)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		part string
		run  func() error
	}{
		{partOutage, func() error { return outage(ctx, o, r, progress) }},
		{partBurst, func() error { return bursts(ctx, o, r, progress) }},
	} {
		if o.runs(one.part) {
			if err := r.part(one.part, o, one.run); err != nil {
				return err
			}
		}
	}
	return r.table(out)
}

// newReport has the versions.
func newReport(ctx context.Context, o options, progress io.Writer) (*report, error) {
	bins, err := cluster.Binaries(ctx, progress)
	if err != nil {
		return nil, err
	}
	keda, err := cluster.KEDABinaries(ctx, progress)
	if err != nil {
		return nil, err
	}
	return &report{
		KEDA: keda.Version, Kubernetes: bins.KubernetesVersion, CPUs: runtime.NumCPU(), Begun: time.Now().UTC().Truncate(
			time.Second),
		Settings: newSettings(o), LoadAverage: map[string][]float64{}, Contenders: map[string]*contender{},
	}, nil
}

// part runs one and writes what is known then.
func (r *report) part(name string, o options, run func() error) error {
	r.noteLoad(name)
	if err := run(); err != nil {
		return fmt.Errorf("part %s: %w", name, err)
	}
	r.noteLoad(name)
	return output.JSON(o.jsonPath, r)
}

// words turns the name of a contender into a part of the name of an object.
func words(contender string) string { return strings.ReplaceAll(contender, "_", "-") }
