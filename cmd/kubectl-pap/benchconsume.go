// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
)

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
	addAccess(f, &access)
	return command
}
