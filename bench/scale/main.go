// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the parts of the stage write their own logs
	command.Main("scale", run)
}

const (
	// scrapeEvery is the interval of a usual Prometheus.
	scrapeEvery = 15 * time.Second
	// brokers over which the Functions are spread.
	brokers = 10
	// defaultQPS is --kube-api-qps of kube-controller-manager without the flag.
	defaultQPS = 20
	// allTopics of the policies, which have one namespace.
	allTopics = "--max-topics-per-namespace=10000"
	// startLimit bounds a start or a fail-over.
	startLimit = 10 * time.Minute
)

// bench is the command line.
type bench struct {
	policies       []int
	pods           int
	scraped        bool
	actuator       string
	burst          int
	settle, steady time.Duration
	flags          string
	// memoryMiB is the limit of the adapter's container; 0 is none. apiQPS is --kube-api-qps of kube-controller-manager.
	memoryMiB, apiQPS int
	// jsonPath is a file; empty is none.
	jsonPath      string
	out, progress io.Writer
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	b := bench{out: out, progress: progress}
	flags := command.Flags("scale", progress)
	policies := flags.String("policies", "1000", "numbers of policies to measure, one after another, from 1 to 10000")
	flags.IntVar(&b.pods, "pods", 10, "pods of each policy at the start, from 0 to 20; with any, they follow its replicas")
	flags.BoolVar(&b.scraped, "scrape", false, "give pods an address, so that the adapter reads their counters")
	flags.StringVar(&b.actuator, "actuator", string(v1alpha1.ActuatorAuto), "spec.actuator of the policies, Auto or "+
		"Direct: a small machine does not create thousands of HorizontalPodAutoscalers")
	flags.IntVar(&b.burst, "burst", 0, "policies of which the load doubles at once after the steady state")
	flags.DurationVar(&b.settle, "settle", 2*time.Minute, "between the last reading and the steady state")
	flags.DurationVar(&b.steady, "steady", 2*time.Minute, "how long the steady state is measured, at least 30s")
	flags.StringVar(&b.flags, "adapter-flags", "", "more flags of the adapter, separated by spaces")
	flags.IntVar(&b.memoryMiB, "memory-limit", 512, "the memory limit of the adapter's container in MiB, by default the "+
		"chart's; 0 is none")
	flags.IntVar(&b.apiQPS, "kube-api-qps", defaultQPS, "that of kube-controller-manager, by default its own; with "+
		"another, twice as much is the burst, and 20 HorizontalPodAutoscalers are synchronized at once")
	flags.StringVar(&b.jsonPath, "out", "", "file for the numbers as JSON; none when empty")
	if err := command.Parse(flags, args); err != nil {
		return err
	}
	for text := range strings.SplitSeq(*policies, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 10_000 {
			return fmt.Errorf("-policies has %q: each must be from 1 to 10000", text)
		}
		b.policies = append(b.policies, n)
	}
	if err := b.validate(); err != nil {
		return err
	}
	return b.run(ctx)
}

func (b bench) validate() error {
	if b.burst < 0 || b.burst > slices.Min(b.policies) {
		return fmt.Errorf("-burst is %d: it must be from 0 to the number of policies", b.burst)
	}
	if b.actuator != string(v1alpha1.ActuatorAuto) && b.actuator != string(v1alpha1.ActuatorDirect) {
		return fmt.Errorf("-actuator is %q: it must be Auto or Direct", b.actuator)
	}
	if b.memoryMiB < 0 || b.apiQPS < 1 {
		return fmt.Errorf("-memory-limit is %d and -kube-api-qps %d: they must be at least 0 and 1", b.memoryMiB, b.apiQPS)
	}
	if b.pods < 0 || b.pods > 20 || b.settle < 0 || b.steady < 2*scrapeEvery {
		return fmt.Errorf("-pods is %d, -settle %s and -steady %s: they must be from 0 to 20, and at least 0s and %s", b.pods,
			b.settle, b.steady, 2*scrapeEvery)
	}
	return nil
}

func (b bench) run(ctx context.Context) error {
	bins, err := binaries.BuildControlPlane(ctx, b.progress)
	if err != nil {
		return err
	}
	r := report{Kubernetes: bins.KubernetesVersion, CPUs: runtime.NumCPU(), Flags: b.flags}
	for _, policies := range b.policies {
		measured, err := b.measure(ctx, policies)
		if err != nil {
			return fmt.Errorf("measuring %d policies: %w", policies, err)
		}
		r.Rows = append(r.Rows, measured)
		if err := output.JSON(b.jsonPath, r); err != nil {
			return err
		}
	}
	return r.writeTable(b.out)
}

// measure starts the scene, measures, and cleans up.
func (b bench) measure(ctx context.Context, policies int) (r row, err error) {
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		if ended := group.Wait(); err == nil || errors.Is(err, context.Canceled) {
			err = errors.Join(err, ended)
		}
	}()
	sc, urls, err := b.newScene(ctx, policies)
	if err != nil {
		return r, err
	}
	s, err := stage.Open(ctx, stage.Config{
		Progress: b.progress, AdminURL: strings.Join(urls, ","),
		AdapterFlags: append([]string{allTopics}, strings.Fields(b.flags)...),
		AdapterEnv:   b.adapterEnv(),
		Controllers: []string{ // they would replace or delete the pods
			"-statefulset-controller", "-replicaset-controller", "-deployment-controller", "-garbage-collector-controller",
		},
		ControllerManagerArgs: b.controllerManagerArgs(),
	})
	if err != nil {
		return r, fmt.Errorf("setting the stage: %w", err)
	}
	defer s.Close()
	if err := s.Adapter.Stop(); err != nil { // it measures a start with everything there
		return r, err
	}
	sc.client = s.Client
	if err := sc.create(ctx, urls); err != nil {
		return r, err
	}
	follow, endFollow := context.WithCancel(ctx)
	defer endFollow() // before the stage ends
	sc.follow(follow, group)
	r = row{Policies: policies, Pods: policies * b.pods}
	if err := b.measureAdapter(follow, s, sc, &r, group); err != nil {
		return r, fmt.Errorf("%w; the adapter's last lines:\n%s", err, s.Adapter.LogTail())
	}
	return r, nil
}

// adapterEnv limits the memory as in a container, where the adapter finds the limit itself.
func (b bench) adapterEnv() []string {
	if b.memoryMiB == 0 {
		return nil
	}
	return []string{fmt.Sprintf("GOMEMLIMIT=%d", int64(b.memoryMiB)<<20*9/10)}
}

func (b bench) controllerManagerArgs() []string {
	if b.apiQPS == defaultQPS {
		return nil
	}
	return []string{
		fmt.Sprintf("--kube-api-qps=%d", b.apiQPS), fmt.Sprintf("--kube-api-burst=%d", 2*b.apiQPS),
		"--concurrent-horizontal-pod-autoscaler-syncs=20",
	}
}

// measureAdapter measures a start and the steady state, and then a burst or a fail-over.
func (b bench) measureAdapter(ctx context.Context, s *stage.Stage, sc *scene, r *row, group *errgroup.Group) error {
	b.tell("starting the adapter with %d policies", r.Policies)
	begun := time.Now()
	if err := s.Adapter.Restart(ctx); err != nil {
		return err
	}
	start, err := b.awaitReadings(ctx, s, s.Adapter, r.Policies)
	if err != nil {
		return err
	}
	r.AllKnownSeconds = time.Since(begun).Seconds()
	b.tell("all are known after %.0f s; settling for %s", r.AllKnownSeconds, b.settle)
	churning, endChurn := context.WithCancel(ctx)
	defer endChurn()
	group.Go(func() error { return sc.churn(churning) })
	settling, err := scrapes(ctx, s, s.Adapter, b.settle)
	if err != nil {
		return err
	}
	b.tell("measuring for %s", b.steady)
	steady, err := scrapes(ctx, s, s.Adapter, b.steady)
	if err != nil {
		return err
	}
	r.setSteady(append(start, settling...), steady)
	r.Direct = sc.burst.directs()
	b.tell("%.0f MB, %.3f cores; the controller writes the replicas of %d", r.RSSMB, r.CPUCores, r.Direct)
	if b.burst > 0 {
		endChurn() // it would end the load of the burst
		return b.measureBurst(ctx, sc, r)
	}
	return b.measureFailover(ctx, s, r)
}

// measureFailover measures a second replica after it took over.
func (b bench) measureFailover(ctx context.Context, s *stage.Stage, r *row) error {
	b.tell("failing over")
	standby, err := s.AddAdapter(ctx, "standby", "--policy-metrics=Full")
	if err != nil {
		return err
	}
	defer standby.Kill()
	if err := command.Pause(ctx, scrapeEvery); err != nil {
		return err
	}
	begun := time.Now()
	s.Adapter.Kill()
	if _, err := b.awaitReadings(ctx, s, standby, r.Policies); err != nil {
		return fmt.Errorf("%w; the second replica's last lines:\n%s", err, standby.LogTail())
	}
	r.FailoverSeconds = time.Since(begun).Seconds()
	const calm = 3 * scrapeEvery
	if _, err := scrapes(ctx, s, standby, calm); err != nil {
		return err
	}
	ages, err := scrapes(ctx, s, standby, calm)
	if err != nil {
		return err
	}
	r.setAges(ages)
	return nil
}

// awaitReadings waits until the adapter has a reading of every policy, and returns what it said until then.
func (b bench) awaitReadings(ctx context.Context, s *stage.Stage, a *stage.Adapter, policies int) (
	seen []scrape, err error,
) {
	const look = 3 * time.Second // each is a scrape
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = cluster.WaitFor(ctx, "a reading for each policy", look, func(ctx context.Context) (bool, string, error) {
		one, err := scrapeOf(ctx, s, a)
		if err != nil {
			return false, "", err
		}
		seen = append(seen, one)
		known := len(one.Metrics[readings])
		return known >= policies, fmt.Sprintf("%d of %d", known, policies), nil
	})
	return seen, err
}

func scrapeOf(ctx context.Context, s *stage.Stage, a *stage.Adapter) (scrape, error) {
	text, err := s.Ask(ctx, a, "/metrics")
	return newScrape(time.Now(), text), err
}

// scrapes reads /metrics now, and every scrapeEvery until length is over.
func scrapes(ctx context.Context, s *stage.Stage, a *stage.Adapter, length time.Duration) (all []scrape, err error) {
	for end := time.Now().Add(length); ; {
		one, err := scrapeOf(ctx, s, a)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		if time.Until(end) < scrapeEvery/2 {
			return all, nil
		}
		if err := command.Pause(ctx, scrapeEvery); err != nil {
			return nil, err
		}
	}
}

func (b bench) tell(format string, args ...any) {
	output.Printf(b.progress, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
