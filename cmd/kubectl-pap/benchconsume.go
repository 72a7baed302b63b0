// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
)

// newBenchConsume is the command of the pods of contenders with function.kind Deployment.
func newBenchConsume() *cobra.Command {
	var (
		config     load.Consumption
		access     run.Access
		serviceURL string
	)
	command := &cobra.Command{
		Use: "consume", Short: "Copy each message to another topic after a service time, as a replica of a benchmark",
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
	f.StringVar(&config.Subscription, "subscription", "", "Name of the subscription, which is Shared.")
	f.StringVar(&config.Output, "output-topic", "", "Topic that gets the copies.")
	f.DurationVar(&config.ServiceTime, "service-time", 0, "Time that a message takes.")
	addAccess(f, &access)
	return command
}
