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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the Function Mesh of the tests would log into the table
	command.Main("keda", run)
}

// run writes its results after every part, so that an interruption loses only one.
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

// newReport returns a report with the versions.
func newReport(ctx context.Context, o options, progress io.Writer) (*report, error) {
	bins, err := binaries.BuildControlPlane(ctx, progress)
	if err != nil {
		return nil, err
	}
	keda, err := binaries.BuildKEDA(ctx, progress)
	if err != nil {
		return nil, err
	}
	return &report{
		KEDA: keda.Version, Kubernetes: bins.KubernetesVersion, CPUs: runtime.NumCPU(), Begun: time.Now().UTC().Truncate(
			time.Second),
		Settings: newSettings(o), LoadAverage: map[string][]float64{}, Contenders: map[string]*contender{},
	}, nil
}

// part runs one part and writes the report.
func (r *report) part(name string, o options, run func() error) error {
	r.noteLoad(name)
	if err := run(); err != nil {
		return fmt.Errorf("part %s: %w", name, err)
	}
	r.noteLoad(name)
	return output.JSON(o.jsonPath, r)
}

// words returns the name of a contender as a part of an object's name.
func words(contender string) string { return strings.ReplaceAll(contender, "_", "-") }
