// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/compare"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const planLong = `Show what shorter and longer latency objectives of a policy cost with its own load, and which load the
limits of its replicas can take. Nothing is changed in the cluster.

The load is read from Prometheus, and the policy runs on it with each objective, as kubectl pap simulate does it
(docs/simulate.md). A number in parentheses is the range over what is not known exactly.

  OBJECTIVE           the latency objective; (now) is that of the policy
  REPLICA-HOURS/DAY   replicas, summed over time, for a day of the load
  LATE                share of messages that took longer than the objective
  MAX                 most replicas at one time
  COST/DAY            replica-hours times --cost-per-replica-hour, in your currency

Limits are maxReplicas, the replicas that can have messages at once (partitions), and the number of replicas beyond
which more processed no more, if the controller found one (limit behind the Function). MESSAGES/S is what so many busy
replicas process, and OF PEAK the same in percent of the highest rate of the load.

Needed permissions: get of autoscalingpolicies, which the chart adds to the role "view".`

const planExample = `  # The last week of policy resize
  kubectl pap plan resize --prometheus http://localhost:9090

  # The cost of three objectives
  kubectl pap plan resize --prometheus http://localhost:9090 --objectives 15s,30s,2m --cost-per-replica-hour 0.05

  # The shortest objective that needs at most 100 replica-hours a day
  kubectl pap plan resize --prometheus http://localhost:9090 -o json \
    | jq '[.items[] | select(.replicaHoursPerDay.expected <= 100)] | first.latencyObjectiveSeconds'`

type planOptions struct {
	modelOptions

	cluster    clusterFlags
	output     outputFlag
	objectives []time.Duration
}

func newPlan(streams genericiooptions.IOStreams) *cobra.Command {
	o := planOptions{modelOptions: newModelOptions(), cluster: newClusterFlags()}
	command := &cobra.Command{
		Use:   "plan NAME --prometheus URL",
		Short: "Show what other latency objectives would cost, and which load the limits take",
		Long:  planLong, Example: planExample, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command.Context(), command.Flags(), args[0], streams.Out)
		},
		ValidArgsFunction: o.cluster.completeName,
	}
	f := command.Flags()
	f.DurationSliceVar(&o.objectives, "objectives",
		[]time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute},
		"Latency objectives to simulate, besides that of the policy.")
	o.output.addTo(command, "json or yaml, or text when empty.", formJSON, formYAML)
	o.add(f)
	_ = command.MarkFlagRequired("prometheus")
	o.cluster.addTo(f)
	o.cluster.addNamespace(f, "Namespace of the policy.")
	return command
}

// mostObjectives bounds the time that a simulation takes.
const mostObjectives = 20

func (o *planOptions) validate() error {
	if len(o.objectives) > mostObjectives {
		return fmt.Errorf("--objectives has %d objectives: at most %d are simulated", len(o.objectives), mostObjectives)
	}
	for _, objective := range o.objectives {
		if objective < time.Second || objective > 24*time.Hour {
			return fmt.Errorf("--objectives has %s: an objective must be from 1s to 24h", objective)
		}
	}
	return nil
}

func (o *planOptions) run(ctx context.Context, flags *pflag.FlagSet, name string, out io.Writer) error {
	if err := o.validate(); err != nil {
		return err
	}
	p, _, err := o.cluster.policy(ctx, name)
	if err != nil {
		return err
	}
	limits := limitsOf(p)
	if n := limits[byPartitions]; n > 0 {
		if !flags.Changed("partitions") {
			o.partitions = n
		}
		if o.subscriptionType == "" {
			o.subscriptionType = string(backlog.Failover)
		}
	}
	if limits[byPartitions] = o.partitions; subscriptionType(o.subscriptionType, p.Spec) != backlog.Failover {
		limits[byPartitions] = 0
	}
	config, err := o.config(ctx, flags, p)
	if err != nil {
		return err
	}
	curve, err := compare.NewCurve(ctx, config, o.objectives)
	if err != nil {
		return err
	}
	for _, by := range []string{decide.CappedByMax, byPartitions, byFunction} {
		if n := limits[by]; n > 0 {
			curve.AddLimit(by, n)
		}
	}
	return o.output.write(out, curve, curve.Text)
}

// byPartitions and byFunction are limits of replicas.
const (
	byPartitions = decide.CappedByPartitions
	byFunction   = "limit behind the Function"
)

// limitsOf are the numbers of replicas beyond which more do not help, as far as the status has them.
func limitsOf(p v1alpha1.AutoscalingPolicy) map[string]int {
	limits := map[string]int{
		decide.CappedByMax: int(p.Spec.MaxReplicas), byFunction: int(decide.CeilingIn(p.Status.WorkingCheckpoint)),
	}
	if s := p.Status.Signals; s != nil && s.UsefulReplicas != nil {
		limits[byPartitions] = int(*s.UsefulReplicas)
	}
	return limits
}
