// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

const benchRunLong = `Publish a load and compare how autoscalers keep up with it.

The scenario names the load, the Function, the contenders that scale it, and limits for the first of them. All is
made in a namespace of its own and with topics of its own, and is removed at the end, also after Ctrl-C. Latency
counts from when a message was due, whatever held the publisher up.

Exit codes: 0 all limits are met, 1 a limit is missed, 2 the command or the scenario is wrong, 3 it could not be
measured, such as when this machine could not publish as fast as the load demands.`

const benchRunExample = `  # On the cluster of the current context and the Pulsar of the scenario
  kubectl pap bench run -f scenario.yaml

  # On this machine, in a checkout of pulsar-autoscaler: a real broker, control plane and HPA controller
  kubectl pap bench run -f examples/bench/step.yaml --local

  # All numbers and an HTML page for a pipeline
  kubectl pap bench run -f scenario.yaml -o json --html result.html > result.json`

// coded is an error with an exit code.
type coded struct {
	error
	code int
}

func (c coded) ExitCode() int { return c.code }
func (c coded) Unwrap() error { return c.error }

func newBench(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{Use: "bench", Short: "Compare autoscalers with a load of your own"}
	command.AddCommand(newBenchRun(streams), newBenchClean(streams))
	return command
}

// benchRunOptions are the flags of kubectl pap bench run.
type benchRunOptions struct {
	cluster              clusterFlags
	scenario, html, form string
	local                bool
}

func newBenchRun(streams genericiooptions.IOStreams) *cobra.Command {
	o := benchRunOptions{cluster: newClusterFlags()}
	command := &cobra.Command{
		Use: "run -f SCENARIO", Short: "Publish a load and compare how autoscalers keep up with it",
		Long: benchRunLong, Example: benchRunExample,
		Args: func(command *cobra.Command, args []string) error { return usage(cobra.NoArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context(), streams) },
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	f := command.Flags()
	f.StringVarP(&o.scenario, "filename", "f", "", "File with a Scenario. Recordings of a load are beside it.")
	f.BoolVar(&o.local, "local", false, "Run on this machine, in a checkout of pulsar-autoscaler, on real parts.")
	f.StringVarP(&o.form, "output", "o", "", "Output format: json, or a table when empty.")
	f.StringVar(&o.html, "html", "", "File that gets the result as a page with charts.")
	o.cluster.addTo(f)
	_ = command.MarkFlagFilename("filename", "yaml", "yml")
	return command
}

// clusterFlags are those of kubectl that choose a cluster and a user.
type clusterFlags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
}

func newClusterFlags() clusterFlags {
	return clusterFlags{clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}}
}

func (c clusterFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&c.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "File with the kubeconfig.")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.LongName = "" // a run has a namespace of its own
	clientcmd.BindOverrideFlags(c.overrides, flags, names)
}

func (c clusterFlags) client() (client.Client, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, c.overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return run.NewClient(config)
}

func usage(err error) error {
	if err == nil {
		return nil
	}
	return coded{err, run.ExitUsage}
}

func unmeasured(err error) error {
	if err == nil {
		return nil
	}
	return coded{err, run.ExitNotMeasured}
}

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
	} else if config.Kube, err = o.cluster.client(); err != nil {
		return usage(err)
	}
	result, err := run.Run(ctx, config)
	if result.Verdict.Outcome != "" {
		err = errors.Join(err, o.write(result, streams))
	}
	if err != nil {
		return unmeasured(err)
	}
	if code := result.Verdict.ExitCode(); code != run.ExitMet {
		return coded{errors.New(result.Verdict.Text()), code}
	}
	return nil
}

// config reads the scenario and its load.
func (o *benchRunOptions) config() (run.Config, error) {
	switch {
	case o.form != "" && o.form != "json":
		return run.Config{}, fmt.Errorf("--output is %q: it must be json, or empty for a table", o.form)
	case o.scenario == "":
		return run.Config{}, errors.New("--filename is missing: name a file with a Scenario")
	}
	file, err := os.Open(o.scenario)
	if err != nil {
		return run.Config{}, fmt.Errorf("--filename: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read
	s, err := scenario.Decode(file)
	if err != nil {
		return run.Config{}, fmt.Errorf("reading scenario %s: %w", o.scenario, err)
	}
	schedule, err := s.Load.Schedule(os.DirFS(filepath.Dir(o.scenario)))
	if err != nil {
		return run.Config{}, fmt.Errorf("reading scenario %s: %w", o.scenario, err)
	}
	if !o.local {
		if err := s.CheckCluster(); err != nil {
			return run.Config{}, fmt.Errorf("reading scenario %s: %w", o.scenario, err)
		}
	}
	return run.Config{Scenario: s, Schedule: schedule}, nil
}

// write writes the result as the flags say.
func (o *benchRunOptions) write(result run.Result, streams genericiooptions.IOStreams) error {
	if o.html != "" {
		if err := writePage(o.html, result); err != nil {
			return err
		}
	}
	if o.form == "json" {
		encoder := json.NewEncoder(streams.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	return result.WriteTable(streams.Out)
}

func writePage(path string, result run.Result) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return errors.Join(result.Page().Write(file), file.Close())
}

// benchCleanOptions are the flags of kubectl pap bench clean.
type benchCleanOptions struct {
	cluster  clusterFlags
	adminURL string
	all      bool
}

func newBenchClean(streams genericiooptions.IOStreams) *cobra.Command {
	o := benchCleanOptions{cluster: newClusterFlags()}
	command := &cobra.Command{
		Use: "clean [NAMESPACE... | --all]", Short: "Remove what interrupted runs left behind",
		Long: "Remove what interrupted runs left behind: their Functions, topics and namespaces.\n\n" +
			"Without arguments it lists the namespaces of runs, also of those that are under way.",
		Example: "  # The namespaces of runs\n  kubectl pap bench clean\n\n" +
			"  # Remove what one run left behind\n  kubectl pap bench clean pap-bench-3f9a1c",
		RunE: func(command *cobra.Command, names []string) error { return o.run(command.Context(), streams, names) },
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	f := command.Flags()
	f.BoolVar(&o.all, "all", false, "Remove all runs of the cluster, also those that are under way.")
	f.StringVar(&o.adminURL, "pulsar-admin-url", "",
		"Admin service of the Pulsar with the topics. Default: the one of the run.")
	o.cluster.addTo(f)
	return command
}

func (o *benchCleanOptions) run(ctx context.Context, streams genericiooptions.IOStreams, names []string) error {
	if o.all && len(names) > 0 {
		return usage(errors.New("--all is set beside names of namespaces: leave out one of them"))
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
			err = errors.Join(err, run.Clean(ctx, kube, name, o.adminURL))
		}
	}
	return unmeasured(err)
}
