// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/compare"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const simulateLong = `Simulate a policy with a recorded load. Nothing is changed in a cluster.

The load is read from Prometheus, or is a CSV file with the columns time (RFC 3339 or seconds), rate (messages per
second) and optionally replicas; or with the columns timestamp (RFC 3339, as psql prints it, or Unix time in seconds or
milliseconds) and messages, the count from that row until the next. The policy is evaluated every second by the code of
the adapter, on a model of Pulsar and the replicas. The same model runs KEDA's pulsar scaler (default and tuned
threshold), a HorizontalPodAutoscaler on CPU, fixed replicas, and the recorded replicas.

The capacity of a replica is its process rate while it always has messages. Prometheus often has it; otherwise set
--capacity. Both ends of its range are simulated too, so that every result is a range.

These series are read from Prometheus if they exist:
`

const simulateExample = `  # The last week of the topics in the policy, with the replicas from kube-state-metrics
  kubectl pap simulate -f policy.yaml --prometheus http://localhost:9090 --since 7d

  # The same for a Function, with topics that are not in the policy
  kubectl pap simulate -f policy.yaml --prometheus http://localhost:9090 --topic public/default/in \
    --subscription public/default/resize

  # A recorded load, on replicas that process 40 to 60 messages per second each
  kubectl pap simulate -f policy.yaml --trace load.csv --capacity 40-60

  # Without a policy: bounds and objective by flags
  kubectl pap simulate --trace load.csv --capacity 50 --max-replicas 20 --latency-objective 30s

  # What the policy would do with more replicas and a shorter objective
  kubectl pap simulate -f policy.yaml --trace load.csv --capacity 50 --max-replicas 40 --latency-objective 15s

  # The cost of each contender, and a page with charts
  kubectl pap simulate -f policy.yaml --trace load.csv --capacity 50 --cost-per-replica-hour 0.05 --html result.html`

// Flags that change a policy.
const (
	minReplicasFlag = "min-replicas"
	maxReplicasFlag = "max-replicas"
	objectiveFlag   = "latency-objective"
)

type simulateOptions struct {
	modelOptions

	output                   outputFlag
	policyFile, html         string
	minReplicas, maxReplicas int32
	objective                time.Duration
}

// modelOptions are the flags for the load and the model of a Function.
type modelOptions struct {
	prometheus loadOptions
	// trace is empty if the load is read from Prometheus.
	trace string

	capacity, start  rangeFlag
	subscriptionType string
	partitions       int
	cpuPercent       int
	maxGap           time.Duration

	fixed int
	cost  float64
	seed  uint64
}

func newModelOptions() modelOptions {
	return modelOptions{
		capacity: rangeFlag{kind: "rate", parse: parseRate}, start: rangeFlag{kind: "duration", parse: parseSeconds},
		cpuPercent: 100,
	}
}

// add adds the flags that simulate and plan have.
func (o *modelOptions) add(f *pflag.FlagSet) {
	f.Var(&o.capacity, "capacity", "Messages per second that one replica processes: a number, or a range such as 40-60.")
	f.Var(&o.start, "start-time", "Time from a scale-up until a new replica consumes: a duration, or a range such as "+
		"20s-60s. Default: 15s-60s, assumed.")
	f.StringVar(&o.subscriptionType, "subscription-type", "",
		"Shared, Key_Shared, Failover or Exclusive. Default: spec.subscription.type of the policy, else Shared.")
	f.IntVar(&o.partitions, "partitions", 1, "Partitions of the input topic, which limit the replicas of Failover.")
	f.DurationVar(&o.maxGap, "max-gap", 10*time.Minute, "Longest time between two samples of the load.")
	f.Float64Var(&o.cost, costFlag, 0, "Cost of one replica for an hour, in any currency.")
	f.Uint64Var(&o.seed, "seed", 1, "Seed of all random numbers; the same seed gives the same result.")
	o.prometheus.add(f)
}

func newSimulate(streams genericiooptions.IOStreams) *cobra.Command {
	o := simulateOptions{modelOptions: newModelOptions()}
	command := &cobra.Command{
		Use:     "simulate [-f POLICY] (--prometheus URL | --trace FILE)",
		Short:   "Simulate a policy with a recorded load",
		Long:    simulateLong + "  " + strings.Join(history.Names(), "\n  "),
		Example: simulateExample,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), command.Flags(), streams)
		},
	}
	f := command.Flags()
	f.StringVarP(&o.policyFile, "filename", "f", "", "File with an AutoscalingPolicy; - is standard input.")
	f.Int32Var(&o.minReplicas, minReplicasFlag, 1, "minReplicas, in place of that in the policy file.")
	f.Int32Var(&o.maxReplicas, maxReplicasFlag, 100, "maxReplicas, in place of that in the policy file.")
	f.DurationVar(&o.objective, objectiveFlag, time.Minute, "latencyObjective, in place of that in the policy file.")
	f.StringVar(&o.trace, "trace", "", "CSV file of the load: columns time and rate, or timestamp and messages, and "+
		"optionally replicas.")
	f.IntVar(&o.cpuPercent, "cpu-percent", 100,
		"CPU time of a busy replica in percent of its request, as measured by the HorizontalPodAutoscaler on CPU.")
	f.IntVar(&o.fixed, "fixed-replicas", 0,
		"Replicas of the contender without scaling. Default: those for the highest rate at 80% utilization.")
	o.output.addTo(command, "json or yaml, or a table when empty.", formJSON, formYAML)
	f.StringVar(&o.html, "html", "", "File to write an HTML page with the numbers and charts to.")
	o.add(f)
	f.StringVarP(&o.prometheus.namespace, "namespace", "n", "",
		"Namespace of the workload and the policy. Default: that of the policy file, else of the kubeconfig's context.")
	command.MarkFlagsOneRequired("trace", "prometheus")
	command.MarkFlagsMutuallyExclusive("trace", "prometheus")
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = command.MarkFlagFilename("trace", "csv")
	return command
}

func (o *simulateOptions) run(ctx context.Context, flags *pflag.FlagSet, streams genericiooptions.IOStreams) error {
	policy, err := o.policy(ctx, flags, streams.In)
	if err != nil {
		return err
	}
	config, err := o.config(ctx, flags, policy)
	if err != nil {
		return err
	}
	result, err := compare.Run(ctx, config)
	if err != nil {
		return err
	}
	if o.html != "" {
		if err := result.Page().File(o.html); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	return o.output.write(streams.Out, result, result.Text)
}

// config of the comparison. Flags take precedence over Prometheus.
func (o *modelOptions) config(ctx context.Context, flags *pflag.FlagSet,
	policy v1alpha1.AutoscalingPolicy,
) (compare.Config, error) {
	c := compare.Config{
		Spec:       policy.Spec,
		Start:      compare.Estimate{Range: compare.Range{Low: 15, Expected: 30, High: 60}, Source: "assumed"},
		Partitions: o.partitions, CPUShare: float64(o.cpuPercent) / 100, Fixed: o.fixed, Seed: o.seed,
		Subscription: subscriptionType(o.subscriptionType, policy.Spec),
	}
	if flags.Changed(costFlag) {
		c.CostPerReplicaHour = &o.cost
	}
	recorded, err := o.recorded(ctx, policy)
	if err != nil {
		return compare.Config{}, err
	}
	if c.Load, c.Source = recorded.Load, "Prometheus"; o.trace != "" {
		c.Source = filepath.Base(o.trace)
	}
	if mode := policy.Spec.Mode; !mode.IsAuto() {
		c.Notes = append(c.Notes, fmt.Sprintf("the policy has mode %s, and is simulated as if it had mode Auto", mode))
	}
	if _, known := c.Load.Start(); !known && len(policy.Spec.Schedules) > 0 {
		c.Notes = append(c.Notes, "the policy has schedules, which are left out, because the load has no dates: minReplicas "+
			"and maxReplicas always hold")
	}
	for _, source := range recorded.Sources {
		c.Notes = append(c.Notes, "read "+source)
	}
	if recorded.Capacity != nil {
		c.Capacity = *recorded.Capacity
	}
	if recorded.Start != nil {
		c.Start = *recorded.Start
	}
	if o.start.text != "" {
		c.Start = compare.Estimate{Range: o.start.value, Source: "--start-time"}
	}
	switch {
	case o.capacity.text != "":
		c.Capacity = compare.Estimate{Range: o.capacity.value, Source: "--capacity"}
	case recorded.Capacity == nil && recorded.SeenCapacity > 0:
		return c, fmt.Errorf("--capacity is missing: replicas were not busy for long enough to measure it; "+
			"the highest rate of a replica was %.4g messages per second", recorded.SeenCapacity)
	case recorded.Capacity == nil:
		return c, errors.New("--capacity is missing: set the messages per second of one replica, such as 50 or 40-60")
	}
	c.RecordedLate = recorded.Late(c.Capacity.Expected, decide.LatencyObjective(c.Spec))
	return c, nil
}

// policy returns the policy of the file, if any, with what the flags change.
func (o *simulateOptions) policy(ctx context.Context, flags *pflag.FlagSet,
	stdin io.Reader,
) (v1alpha1.AutoscalingPolicy, error) {
	if o.objective < time.Second || o.objective > 24*time.Hour {
		return v1alpha1.AutoscalingPolicy{},
			fmt.Errorf("--latency-objective is %s: it must be from 1s to 24h", o.objective)
	}
	var policy v1alpha1.AutoscalingPolicy
	if o.policyFile != "" {
		var err error
		if policy, err = readPolicy(ctx, o.policyFile, stdin); err != nil {
			return policy, err
		}
	}
	if policy.Namespace == "" { // no series of the policy is read without
		var err error
		policy.Namespace, err = newClusterFlags().namespace()
		needed := o.trace == "" && policy.Name != "" && o.prometheus.namespace == ""
		if needed && err != nil && !errors.Is(err, clientcmd.ErrEmptyConfig) {
			return policy, fmt.Errorf("%w; or set -n", err)
		}
	}
	sets := func(name string) bool { return o.policyFile == "" || flags.Changed(name) }
	if sets(minReplicasFlag) {
		policy.Spec.MinReplicas = &o.minReplicas
	}
	if sets(maxReplicasFlag) {
		policy.Spec.MaxReplicas = o.maxReplicas
	}
	if sets(objectiveFlag) {
		policy.Spec.LatencyObjective = metav1.Duration{Duration: o.objective}
	}
	return policy, nil
}

// recorded reads the history from Prometheus, or the load from a trace.
func (o *modelOptions) recorded(ctx context.Context, policy v1alpha1.AutoscalingPolicy) (history.History, error) {
	if o.trace == "" {
		return o.prometheus.read(ctx, policy, o.maxGap)
	}
	file, err := os.Open(o.trace)
	if err != nil {
		return history.History{}, fmt.Errorf("--trace: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	load, err := trace.Read(file, o.maxGap)
	if err != nil {
		return history.History{}, fmt.Errorf("reading trace %s: %w", o.trace, err)
	}
	return history.History{Load: load}, nil
}

// subscriptionType returns the type in the flag, else in the policy. Exclusive is simulated as Failover: one consumer
// gets all messages.
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
