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
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the parts of the stage write their own logs
	command.Main("policies", run)
}

// bench is the command line.
type bench struct {
	policies       int
	settle, steady time.Duration
	stage          stage.Config
	// jsonPath is a file; empty is none.
	jsonPath      string
	out, progress io.Writer
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	b := bench{stage: stage.Config{Progress: progress}, out: out, progress: progress}
	flags := command.Flags("policies", progress)
	flags.IntVar(&b.policies, "policies", 300, "policies to create at once, from 1 to 10000")
	flags.DurationVar(&b.settle, "settle", time.Minute, "between the last HorizontalPodAutoscaler and the steady state")
	flags.DurationVar(&b.steady, "steady", 2*time.Minute,
		"how long statuses are counted; 4 minutes are a whole swing of the load")
	flags.StringVar(&b.jsonPath, "out", "", "file for the numbers as JSON; none when empty")
	if err := command.Parse(flags, args); err != nil {
		return err
	}
	switch {
	case b.policies < 1 || b.policies > 10_000:
		return fmt.Errorf("-policies is %d: it must be from 1 to 10000", b.policies)
	case b.settle < 0 || b.steady < time.Second:
		return fmt.Errorf("-settle is %s and -steady %s: they must be at least 0s and 1s", b.settle, b.steady)
	}
	return b.run(ctx)
}

func (b bench) run(ctx context.Context) error {
	measured, err := b.measure(ctx)
	if err != nil {
		return err
	}
	if err := measured.writeTable(b.out); err != nil {
		return err
	}
	return output.JSON(b.jsonPath, measured)
}

// measure starts the scene, measures, and cleans up.
func (b bench) measure(ctx context.Context) (measured report, err error) {
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		if ended := group.Wait(); err == nil || errors.Is(err, context.Canceled) {
			err = errors.Join(err, ended)
		}
	}()
	loads := newLoads(b.policies, time.Now())
	adminURL, err := loads.Pulsar(time.Now).Serve(ctx, group)
	if err != nil {
		return measured, err
	}
	b.stage.AdminURL = adminURL
	s, err := stage.Open(ctx, b.stage)
	if err != nil {
		return measured, fmt.Errorf("setting the stage: %w", err)
	}
	defer s.Close()
	watching, err := client.NewWithWatch(s.Cluster.RESTConfig(), client.Options{Scheme: s.Client.Scheme()})
	if err != nil {
		return measured, fmt.Errorf("making a client: %w", err)
	}
	sc := &scene{client: watching, loads: loads}
	watches, endWatches := context.WithCancel(ctx)
	defer endWatches() // before the stage ends
	bins, err := binaries.BuildControlPlane(ctx, b.progress)
	if err != nil {
		return measured, err
	}
	measured = report{
		Kubernetes: bins.KubernetesVersion, CPUs: runtime.NumCPU(), Policies: b.policies,
		AllHPAsGoalSeconds: allHPAsGoal.Seconds(), KEDAAllHPAsSeconds: kedaAllHPAs.Seconds(),
	}
	b.tell("creating %d Functions", b.policies)
	if err := sc.createFunctions(ctx, adminURL); err != nil {
		return measured, err
	}
	sc.watch(watches, group)
	if err := b.measureCreation(ctx, sc, &measured); err != nil {
		return measured, fmt.Errorf("%w; the adapter's last lines:\n%s", err, s.Adapter.LogTail())
	}
	return measured, b.measureSteady(ctx, sc, &measured)
}

// measureCreation creates the policies and waits for the last HorizontalPodAutoscaler.
func (b bench) measureCreation(ctx context.Context, s *scene, measured *report) error {
	const look = 20 * time.Millisecond
	b.tell("creating %d policies", b.policies)
	begun := time.Now()
	if err := s.createPolicies(ctx); err != nil {
		return err
	}
	measured.CreatedSeconds = time.Since(begun).Seconds()
	err := cluster.WaitFor(ctx, "a HorizontalPodAutoscaler for each policy", look,
		func(context.Context) (bool, string, error) {
			count, _ := s.autoscalers.arrivals()
			return count >= b.policies, fmt.Sprintf("%d of %d", count, b.policies), nil
		})
	if err != nil {
		return err
	}
	_, last := s.autoscalers.arrivals()
	measured.FirstHPASeconds = s.autoscalers.firstArrival().Sub(begun).Seconds()
	measured.AllHPAsSeconds = last.Sub(begun).Seconds()
	return nil
}

// measureSteady counts writes while only the load changes.
func (b bench) measureSteady(ctx context.Context, s *scene, measured *report) error {
	b.tell("settling for %s", b.settle)
	if err := command.Pause(ctx, b.settle); err != nil {
		return err
	}
	b.tell("counting statuses for %s", b.steady)
	begun, writes, scales := time.Now(), s.statuses.changed(), s.scales.changed()
	if err := command.Pause(ctx, b.steady); err != nil {
		return err
	}
	measured.setSteady(time.Since(begun), s.statuses.changed()-writes, s.scales.changed()-scales)
	return nil
}

func (b bench) tell(format string, args ...any) {
	output.Printf(b.progress, format+"\n", args...)
}
