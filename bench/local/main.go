// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// Address has the addresses of the cluster.
type Address struct {
	Kubeconfig string `json:"kubeconfig"`
	AdminURL   string `json:"adminURL"`
	ServiceURL string `json:"serviceURL"`
	Pulsar     string `json:"pulsar"`
}

func main() {
	ctrl.SetLogger(logr.Discard()) // the fake Function Mesh logs for tests only
	command.Main("local", func(ctx context.Context, args []string, out, progress io.Writer) error {
		return run(ctx, args, streams{in: os.Stdin, out: out, progress: progress})
	})
}

type streams struct {
	in            io.Reader
	out, progress io.Writer
}

func run(ctx context.Context, args []string, s streams) error {
	config, err := parse(args, s.progress)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		_, _ = io.Copy(io.Discard, s.in) // waits for its end
		end()
	}()
	scene, closeStage, err := testbed.Open(ctx, config)
	if err != nil {
		return err
	}
	defer closeStage()
	err = json.NewEncoder(s.out).Encode(Address{
		Kubeconfig: scene.Cluster.Kubeconfig(), AdminURL: scene.Broker.AdminURL(), ServiceURL: scene.Broker.ServiceURL(),
		Pulsar: scene.Broker.Version(),
	})
	if err != nil {
		return fmt.Errorf("writing how to reach the cluster: %w", err)
	}
	<-ctx.Done()
	return nil
}

// parse reads the flags. The defaults are as shipped.
func parse(args []string, progress io.Writer) (stage.Config, error) {
	config := stage.Config{Guests: true, Progress: progress}
	flags := command.Flags("local", progress)
	withKEDA := flags.Bool("keda", false, "run KEDA and our scaler too")
	flags.Func("adapter-flag", "a flag of the adapter that differs from its shipped value; may be repeated",
		func(text string) error {
			config.AdapterFlags = append(config.AdapterFlags, text)
			return nil
		})
	flags.DurationVar(&config.HPASyncPeriod, "hpa-sync", 15*time.Second, "sync period of the HPA controller")
	if err := command.Parse(flags, args); err != nil {
		return stage.Config{}, err
	}
	if *withKEDA {
		config.KEDA = &keda.Config{}
	}
	return config, nil
}
