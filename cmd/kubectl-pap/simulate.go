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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/manifest"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/compare"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
)

const simulateLong = `Show what a policy would have done with a recorded load, without touching a cluster.

The load is a CSV file with the columns time (RFC 3339 or seconds), rate (messages per second) and, where they
are known, replicas. It is replayed second by second through the code that the adapter runs and through a model
of Pulsar and the replicas, for the policy and beside it for KEDA's pulsar scaler (default and tuned threshold),
a HorizontalPodAutoscaler on CPU, fixed replicas, and the replicas that really ran.

The capacity of a replica is what it processes while it has work all the time. As a range, such as 40-60, it is
simulated at both ends too, and every result becomes a range.`

const simulateExample = `  # A policy with a recorded load, on replicas that process 40 to 60 messages per second each
  kubectl pap simulate -f policy.yaml --trace load.csv --capacity 40-60

  # Without a policy: bounds and objective by flags
  kubectl pap simulate --trace load.csv --capacity 50 --max-replicas 20 --latency-objective 30s

  # The cost of each contender beside its replica-hours
  kubectl pap simulate -f policy.yaml --trace load.csv --capacity 50 --cost-per-replica-hour 0.05

  # All numbers for a pipeline
  kubectl pap simulate -f policy.yaml --trace load.csv --capacity 50 -o json`

// simulateOptions are the flags of kubectl pap simulate.
type simulateOptions struct {
	policyFile, trace, output string
	minReplicas, maxReplicas  int32
	objective                 time.Duration

	capacity, start  rangeFlag
	subscriptionType string
	partitions       int
	cpuPercent       int
	maxGap           time.Duration

	fixed int
	cost  float64
	seed  uint64
}

func newSimulate(streams genericiooptions.IOStreams) *cobra.Command {
	o := simulateOptions{capacity: rangeFlag{unit: perSecond}, start: rangeFlag{unit: seconds}}
	command := &cobra.Command{
		Use:     "simulate (-f POLICY | --max-replicas N) --trace FILE --capacity N",
		Short:   "Show what a policy would have done with a recorded load",
		Long:    simulateLong,
		Example: simulateExample,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), command.Flags(), streams)
		},
	}
	f := command.Flags()
	f.StringVarP(&o.policyFile, "filename", "f", "", "File with an AutoscalingPolicy; - is standard input.")
	f.Int32Var(&o.minReplicas, "min-replicas", 1, "minReplicas without a policy file.")
	f.Int32Var(&o.maxReplicas, "max-replicas", 100, "maxReplicas without a policy file.")
	f.DurationVar(&o.objective, "latency-objective", time.Minute, "latencyObjective without a policy file.")
	f.StringVar(&o.trace, "trace", "", "CSV file of the load: columns time, rate and, where known, replicas.")
	f.Var(&o.capacity, "capacity", "Messages per second that one replica processes: a number, or a range such as 40-60.")
	f.Var(&o.start, "start-time", "Time from a scale-up until a new replica consumes: a duration, or a range such as "+
		"20s-60s. Default: 15s-60s, assumed.")
	f.StringVar(&o.subscriptionType, "subscription-type", "",
		"Shared, Key_Shared, Failover or Exclusive. Default: spec.subscription.type of the policy, else Shared.")
	f.IntVar(&o.partitions, "partitions", 1, "Partitions of the input topic, which limit the replicas of Failover.")
	f.IntVar(&o.cpuPercent, "cpu-percent", 100,
		"CPU time of a busy replica in percent of its request, which the HorizontalPodAutoscaler on CPU sees.")
	f.DurationVar(&o.maxGap, "max-gap", 10*time.Minute, "Longest time between two samples of the load.")
	f.IntVar(&o.fixed, "fixed-replicas", 0,
		"Replicas of the contender that does not scale. Default: what the highest rate needs at 80% utilization.")
	f.Float64Var(&o.cost, "cost-per-replica-hour", 0, "Cost of one replica for an hour, in any currency.")
	f.Uint64Var(&o.seed, "seed", 1, "Seed of all random numbers; the same seed gives the same result.")
	f.StringVarP(&o.output, "output", "o", "", "Output format: json, or a table when empty.")
	for _, name := range []string{"min-replicas", "max-replicas", "latency-objective"} {
		command.MarkFlagsMutuallyExclusive("filename", name)
	}
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = command.MarkFlagFilename("trace", "csv")
	return command
}

func (o *simulateOptions) run(ctx context.Context, flags *pflag.FlagSet, streams genericiooptions.IOStreams) error {
	if o.output != "" && o.output != "json" {
		return fmt.Errorf("--output is %q: it must be json, or empty for a table", o.output)
	}
	config, err := o.config(ctx, flags, streams.In)
	if err != nil {
		return err
	}
	result, err := compare.Run(ctx, config)
	if err != nil {
		return err
	}
	if o.output == "json" {
		encoder := json.NewEncoder(streams.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	return result.WriteTable(streams.Out)
}

func (o *simulateOptions) config(ctx context.Context, flags *pflag.FlagSet, stdin io.Reader) (compare.Config, error) {
	spec, err := o.spec(ctx, stdin)
	if err != nil {
		return compare.Config{}, err
	}
	load, err := o.load()
	if err != nil {
		return compare.Config{}, err
	}
	if !o.capacity.set {
		return compare.Config{}, errors.New("--capacity is missing: say what one replica processes, such as 50 or 40-60")
	}
	c := compare.Config{
		Load: load, Source: filepath.Base(o.trace), Spec: spec,
		Capacity:   compare.Estimate{Range: o.capacity.value, Source: "--capacity"},
		Start:      compare.Estimate{Range: compare.Range{Low: 15, Expected: 30, High: 60}, Source: "assumed"},
		Partitions: o.partitions, CPUShare: float64(o.cpuPercent) / 100, Fixed: o.fixed, Seed: o.seed,
	}
	if o.start.set {
		c.Start = compare.Estimate{Range: o.start.value, Source: "--start-time"}
	}
	if flags.Changed("cost-per-replica-hour") {
		c.CostPerReplicaHour = &o.cost
	}
	c.Subscription = subscriptionType(o.subscriptionType, spec)
	return c, nil
}

// spec of the policy file, or of the flags.
func (o *simulateOptions) spec(ctx context.Context, stdin io.Reader) (v1alpha1.AutoscalingPolicySpec, error) {
	if o.policyFile == "" {
		return v1alpha1.AutoscalingPolicySpec{ScalingSpec: v1alpha1.ScalingSpec{
			MinReplicas: &o.minReplicas, MaxReplicas: o.maxReplicas,
			LatencyObjective: metav1.Duration{Duration: o.objective},
		}}, o.check()
	}
	from := stdin
	if o.policyFile != "-" {
		file, err := os.Open(o.policyFile)
		if err != nil {
			return v1alpha1.AutoscalingPolicySpec{}, fmt.Errorf("--filename: %w", err)
		}
		defer file.Close() //nolint:errcheck // only read
		from = file
	}
	read, err := manifest.Policy(ctx, from)
	if err != nil {
		return v1alpha1.AutoscalingPolicySpec{}, fmt.Errorf("reading policy %s: %w", o.policyFile, err)
	}
	return read.Spec, nil
}

// check the flags that replace a policy.
func (o *simulateOptions) check() error {
	if o.objective < time.Second || o.objective > 24*time.Hour {
		return fmt.Errorf("--latency-objective is %s: it must be from 1s to 24h", o.objective)
	}
	return nil
}

func (o *simulateOptions) load() (trace.Load, error) {
	if o.trace == "" {
		return trace.Load{}, errors.New("--trace is missing: name a CSV file with the columns time and rate")
	}
	file, err := os.Open(o.trace)
	if err != nil {
		return trace.Load{}, fmt.Errorf("--trace: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read
	load, err := trace.Read(file, o.maxGap)
	if err != nil {
		return trace.Load{}, fmt.Errorf("reading trace %s: %w", o.trace, err)
	}
	return load, nil
}

// subscriptionType of the flag, else of the policy. The one consumer of an Exclusive subscription gets what that of a
// Failover subscription gets.
func subscriptionType(flag string, spec v1alpha1.AutoscalingPolicySpec) backlog.SubscriptionType {
	if flag == "" && spec.Subscription != nil {
		flag = string(spec.Subscription.Type)
	}
	switch backlog.SubscriptionType(flag) {
	case "":
		return backlog.Shared
	case backlog.Exclusive:
		return backlog.Failover
	default:
		return backlog.SubscriptionType(flag)
	}
}
