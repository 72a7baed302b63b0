// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/outcome"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
)

const reportLong = `Report what policies did in a period: how much of the time messages met their latency objective, the
replica-hours, and what scaling saved. The policy with the most late time is first.

  MET         share of the time in which messages met the latency objective
  LATE        time in which they did not
  REPLICA-H   running replicas, summed over time, in hours
  SAVED       replica-hours below the largest number of each day (UTC), if it had run all the time
  SINCE       replica-hours below the mean in mode Recommend or Paused, if a policy was a day or longer in each
  COST        replica-hours times --cost-per-replica-hour, in your currency
  NO DATA     time in which the objective or the replicas are unknown

Time without data counts neither as met nor as late, and has no replica-hours. Hours in mode Recommend or Paused
are in a line below the table. Below it are also the ten policies with the most late time, with the reasons of their
condition ObjectiveMet (docs/status.md).

The numbers are in whole hours, and for less than a day in whole 5 minutes. They are read from these series of the
adapter, for which --policy-metrics=Essential (adapter.policyMetrics in the chart) is enough:

  pulsar_autoscaler_policy_late_seconds_total      pulsar_autoscaler_policy_objective_met
  pulsar_autoscaler_policy_replica_seconds_total   pulsar_autoscaler_policy_running_replicas
  pulsar_autoscaler_policy_condition               pulsar_autoscaler_policy_info

The charts of -o html are of these series as well:

  pulsar_autoscaler_policy_publish_rate            pulsar_autoscaler_policy_ready_messages

Prometheus keeps 15 days unless --storage.tsdb.retention.time says otherwise. Of several clusters in one Prometheus,
policies with the same namespace and name are one.

No cluster is read, except with --by label=KEY: that needs list of autoscalingpolicies, as in the role "view".`

const reportExample = `  # The last 30 days of all policies
  kubectl pap report -A --prometheus http://localhost:9090

  # By namespace, with the cost, as a page
  kubectl pap report -A --by namespace --cost-per-replica-hour 0.05 -o html \
    --prometheus http://localhost:9090 > report.html

  # By the label team of the policies
  kubectl pap report -A --by label=team --prometheus http://localhost:9090

  # October, for a spreadsheet
  kubectl pap report -A --since 31d --until 2026-11-01T00:00:00Z -o csv --prometheus http://localhost:9090`

type reportOptions struct {
	cluster    clusterFlags
	output     outputFlag
	prometheus periodOptions
	by         string
	cost       float64
}

func newReport(streams genericiooptions.IOStreams) *cobra.Command {
	o := reportOptions{cluster: newClusterFlags()}
	command := &cobra.Command{
		Use:   "report --prometheus URL",
		Short: "Report how much of the time policies met their objective, and what they saved",
		Long:  reportLong, Example: reportExample, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), command.Flags(), streams.Out)
		},
	}
	f := command.Flags()
	o.prometheus.add(f, "30d")
	_ = command.MarkFlagRequired("prometheus")
	f.StringVar(&o.by, "by", "", "A row for each namespace, or for each value of a label of the policies: namespace, or "+
		"label=KEY.")
	o.output.addTo(command, "json, yaml, csv or html, or text when empty.", formJSON, formYAML, formCSV, formHTML)
	f.Float64Var(&o.cost, costFlag, 0, "Cost of one replica for an hour, in any currency.")
	o.cluster.addTo(f)
	o.cluster.addNamespaces(f, "Namespace of the policies.", "Report the policies of all namespaces.")
	_ = command.RegisterFlagCompletionFunc("by",
		cobra.FixedCompletions([]cobra.Completion{byNamespace, byLabel}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

const (
	costFlag = "cost-per-replica-hour"
	// byNamespace and byLabel are values of --by; the key of a label follows.
	byNamespace, byLabel = "namespace", "label="
)

func (o *reportOptions) validate() error {
	key, isLabel := strings.CutPrefix(o.by, byLabel)
	switch {
	case o.by != "" && o.by != byNamespace && (!isLabel || key == ""):
		return fmt.Errorf("--by is %q: it must be namespace, or label= with the key of a label", o.by)
	case !(o.cost >= 0 && o.cost <= maxCost):
		return fmt.Errorf("--%s is %v: it must be from 0 to %g", costFlag, o.cost, maxCost)
	}
	return nil
}

// maxCost of a replica and hour.
const maxCost = 1e6

func (o *reportOptions) run(ctx context.Context, flags *pflag.FlagSet, out io.Writer) error {
	if err := o.validate(); err != nil {
		return err
	}
	var c history.OutcomeConfig
	var err error
	if c.Namespace, err = o.cluster.namespaces(); err != nil {
		return err
	}
	if c.Server, err = o.prometheus.server(); err != nil {
		return err
	}
	if c.From, c.To, err = o.prometheus.times(time.Now()); err != nil {
		return err
	}
	config := outcome.Config{GroupedBy: o.by}
	if flags.Changed(costFlag) {
		config.CostPerReplicaHour = &o.cost
	}
	if o.by != "" {
		if config.Group, err = o.group(ctx, c.Namespace); err != nil {
			return err
		}
	}
	config.From, config.To = c.Period()
	c.Load = o.output.form == formHTML
	if config.Outcomes, err = history.ReadOutcomes(ctx, c); err != nil {
		return err
	}
	return o.write(out, outcome.New(config))
}

// group names the groups of --by.
func (o *reportOptions) group(ctx context.Context, namespace string) (func(history.PolicyOutcome) string, error) {
	key, isLabel := strings.CutPrefix(o.by, byLabel)
	if !isLabel {
		return func(p history.PolicyOutcome) string { return p.Namespace }, nil
	}
	kube, err := o.cluster.client()
	if err != nil {
		return nil, err
	}
	policies, err := selection{namespace: namespace, labels: labels.Everything()}.list(ctx, kube)
	if err != nil {
		return nil, err
	}
	values := map[[2]string]string{}
	for i := range policies {
		values[[2]string{policies[i].Namespace, policies[i].Name}] = policies[i].Labels[key]
	}
	// Deleted policies have no label either.
	return func(p history.PolicyOutcome) string { return cmp.Or(values[[2]string{p.Namespace, p.Name}], unknown) }, nil
}

func (o *reportOptions) write(out io.Writer, r outcome.Report) error {
	switch o.output.form {
	case formCSV:
		return r.WriteCSV(out)
	case formHTML:
		return r.Page().Write(out)
	default:
		return o.output.write(out, r, r.Text)
	}
}
