// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
)

// benchCleanOptions are the flags of kubectl pap bench clean.
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
	if err := o.access.Validate(); err != nil {
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
