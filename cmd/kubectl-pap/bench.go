// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

const benchRunLong = `Publish a load and compare how autoscalers handle it.

The scenario has the load, the Function, the contenders that scale it, and limits for the first contender. A run
creates its own namespace and topics and deletes them at the end, also after Ctrl-C. Latency counts from the scheduled
time of a message, even if it was published late.

With --target the load is published to a topic that your own workload consumes, and its policy scales it. The contenders
and the function of the scenario are then ignored, and the objective is that of the policy.

Exit codes: 0 all limits are met, 1 a limit was exceeded, 2 the command or the scenario is invalid, 3 nothing could be
measured, such as when this machine published slower than the load requires.`

const benchRunExample = `  # On the cluster of the current context and the Pulsar of the scenario
  kubectl pap bench run -f scenario.yaml

  # Your own Function and its policy: publishes to the input, and creates and deletes nothing
  kubectl pap bench run -f scenario.yaml --target Function/resize -n media \
    --i-know-this-publishes-into public/default/images

  # On this machine, in a checkout of pulsar-autoscaler: a real broker, control plane and HPA controller
  kubectl pap bench run -f examples/bench/step.yaml --local

  # All numbers and an HTML page for a pipeline
  kubectl pap bench run -f scenario.yaml -o json --html result.html > result.json`

// coded is an error with an exit code.
type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

func withCode(err error, code int) error {
	if err == nil {
		return nil
	}
	return coded{err, code}
}

func newBench(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{Use: "bench", Short: "Compare autoscalers under your own load"}
	command.AddCommand(newBenchRun(streams), newBenchClean(streams), newBenchConsume())
	return command
}

type benchRunOptions struct {
	cluster        clusterFlags
	access         run.Access
	output         outputFlag
	scenario, html string
	target, topic  string
	local          bool
}

func newBenchRun(streams genericiooptions.IOStreams) *cobra.Command {
	o := benchRunOptions{cluster: newClusterFlags()}
	command := &cobra.Command{
		Use: "run -f SCENARIO", Short: "Publish a load and compare how autoscalers handle it",
		Long: benchRunLong, Example: benchRunExample,
		Args: func(command *cobra.Command, args []string) error { return usage(cobra.NoArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context(), streams) },
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	f := command.Flags()
	f.StringVarP(&o.scenario, "filename", "f", "", "File with a Scenario. Paths of recorded loads are relative to it.")
	f.BoolVar(&o.local, "local", false, "Run on a Pulsar and a cluster on this machine. Needs a checkout of the sources.")
	o.output.addTo(command, "json or yaml, or a table when empty.", formJSON, formYAML)
	f.StringVar(&o.html, "html", "", "File to write an HTML page with the result and charts to.")
	f.StringVar(&o.target, "target", "",
		"Your workload that gets the load, as in its policy's status.target, such as Function/resize.")
	f.StringVar(&o.topic, "i-know-this-publishes-into", "",
		"Topic to publish the load to. The target must consume it. Required with --target.")
	addAccess(f, &o.access)
	o.cluster.addTo(f)
	o.cluster.addNamespace(f, "Namespace of the target.")
	_ = command.MarkFlagFilename("filename", "yaml", "yml")
	return command
}

func usage(err error) error { return withCode(err, run.ExitUsage) }

func unmeasured(err error) error { return withCode(err, run.ExitNotMeasured) }

func (o *benchRunOptions) run(ctx context.Context, streams genericiooptions.IOStreams) error {
	config, err := o.config()
	if err != nil {
		return usage(err)
	}
	config.Progress = streams.ErrOut
	if o.local {
		local, err := run.StartLocal(ctx, config.Scenario, streams.ErrOut)
		if err != nil {
			return unmeasured(err)
		}
		defer local.Close()
		config.Kube, config.Scenario.Pulsar, config.Differs = local.Kube, local.Pulsar, local.Differs
		if config.Scenario.Local.Outage.For.Duration > 0 {
			config.Break = local.Break
		}
	} else if config.Kube, err = o.cluster.client(); err != nil {
		return usage(err)
	}
	result, err := run.Run(ctx, config)
	if result.Verdict.Outcome != "" {
		err = errors.Join(err, o.write(result, streams))
	}
	code := result.Verdict.ExitCode()
	switch {
	case errors.Is(err, run.ErrNotConsumed):
		return usage(err)
	case err == nil && code != run.ExitMet:
		return coded{errors.New(result.Verdict.Text()), code}
	default:
		return unmeasured(err)
	}
}

func (o *benchRunOptions) validate() error {
	switch {
	case o.scenario == "":
		return errors.New("--filename is missing: name a file with a Scenario")
	case o.local && (o.target != "" || o.access != run.Access{}):
		return errors.New("--local cannot be used with --target or credentials for Pulsar: it starts its own Pulsar")
	case o.target == "" && (o.topic != "" || o.cluster.overrides.Context.Namespace != ""):
		return errors.New("--i-know-this-publishes-into or --namespace is set without --target: add --target")
	case o.target != "" && o.topic == "":
		return errors.New("--i-know-this-publishes-into is missing: name a topic that --target consumes and " +
			"that may get the load")
	default:
		return checkAccess(o.access)
	}
}

func (o *benchRunOptions) config() (run.Config, error) {
	if err := o.validate(); err != nil {
		return run.Config{}, err
	}
	s, schedule, err := scenario.Open(o.scenario)
	if err != nil {
		return run.Config{}, err
	}
	if err := o.check(s); err != nil {
		return run.Config{}, fmt.Errorf("reading scenario %s: %w", o.scenario, err)
	}
	config := run.Config{Scenario: s, Schedule: schedule, Access: o.access}
	if o.target != "" {
		config.Target = run.Target{Name: o.target, Topic: o.topic}
		config.Target.Namespace, err = o.cluster.namespace()
	}
	return config, err
}

// check validates the scenario for the flags.
func (o *benchRunOptions) check(s scenario.Scenario) error {
	switch {
	case o.local:
		return cmp.Or(s.CheckContenders(), s.CheckLocal())
	case o.target != "":
		return s.CheckPulsar()
	default:
		return cmp.Or(s.CheckContenders(), s.CheckPulsar(), s.CheckFunction(),
			s.CheckCredentials(o.access.ShowsCredentials()))
	}
}

func (o *benchRunOptions) write(result run.Result, streams genericiooptions.IOStreams) error {
	if o.html != "" {
		if err := result.Page().File(o.html); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	return o.output.write(streams.Out, result, result.Text)
}

type benchCleanOptions struct {
	cluster  clusterFlags
	access   run.Access
	adminURL string
	all      bool
}

func newBenchClean(streams genericiooptions.IOStreams) *cobra.Command {
	o := benchCleanOptions{cluster: newClusterFlags()}
	command := &cobra.Command{
		Use: "clean [NAMESPACE... | --all]", Short: "Delete the leftovers of interrupted runs",
		Long: "Delete the leftovers of interrupted runs: Functions, topics and namespaces.\n\n" +
			"Without arguments it lists the namespaces of runs, including those in progress.",
		Example: "  # The namespaces of runs\n  kubectl pap bench clean\n\n" +
			"  # Delete the leftovers of one run\n  kubectl pap bench clean pap-bench-3f9a1c",
		RunE: func(command *cobra.Command, names []string) error { return o.run(command.Context(), streams, names) },
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	f := command.Flags()
	f.BoolVar(&o.all, "all", false, "Delete all runs of the cluster, including those in progress.")
	f.StringVar(&o.adminURL, "pulsar-admin-url", "",
		"Admin URL of the Pulsar with the topics. Default: that of the run.")
	addAccess(f, &o.access)
	o.cluster.addTo(f)
	return command
}

func (o *benchCleanOptions) run(ctx context.Context, streams genericiooptions.IOStreams, names []string) error {
	if o.all && len(names) > 0 {
		return usage(errors.New("--all cannot be used with names of namespaces: leave out one of them"))
	}
	if err := checkAccess(o.access); err != nil {
		return usage(err)
	}
	kube, err := o.cluster.client()
	if err != nil {
		return usage(err)
	}
	remove := o.all || len(names) > 0
	if len(names) == 0 {
		if names, err = run.Leftovers(ctx, kube); err != nil {
			return unmeasured(err)
		}
	}
	for _, name := range names {
		output.Printf(streams.Out, "%s\n", name)
		if remove {
			err = errors.Join(err, run.Clean(ctx, kube, name, o.adminURL, o.access))
		}
	}
	return unmeasured(err)
}

// newBenchConsume is the command that pods of contenders with function.kind Deployment run.
func newBenchConsume() *cobra.Command {
	var (
		config     load.Consumption
		access     run.Access
		serviceURL string
	)
	command := &cobra.Command{
		Use: "consume", Short: "Consume as a replica of a benchmark: copy each message to a topic after a service time",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := access.Client(serviceURL)
			if err != nil {
				return err
			}
			defer client.Close()
			return load.Consume(command.Context(), client, config)
		},
	}
	f := command.Flags()
	f.StringVar(&serviceURL, "service-url", "", "Service URL of Pulsar, such as pulsar://pulsar-proxy:6650.")
	f.StringVar(&config.Topic, "topic", "", "Topic to consume.")
	f.StringVar(&config.Subscription, "subscription", "", "Name of the Shared subscription.")
	f.StringVar(&config.Output, "output-topic", "", "Topic that gets the copies.")
	f.DurationVar(&config.ServiceTime, "service-time", 0, "Time to process a message.")
	f.IntVar(&config.ReceiverQueueSize, "receiver-queue-size", 0, "Messages to prefetch. 0: Pulsar's default, 1000.")
	addAccess(f, &access)
	return command
}
