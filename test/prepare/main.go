// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/browser"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/helm"
)

func main() { command.Main("prepare", prepare) }

func prepare(ctx context.Context, args []string, _, progress io.Writer) error {
	queues, err := queuesFor(args)
	if err != nil {
		return err
	}
	return run(ctx, progress, queues...)
}

// step puts one thing into the cache, unless it is there.
type step func(ctx context.Context, progress io.Writer) error

// queuesFor returns what builds, which needs the processors and is done one at a time, and what is fetched.
func queuesFor(args []string) ([][]step, error) {
	controlPlane := of(binaries.BuildControlPlane)
	built := map[string][]step{
		"demo": {controlPlane, build("the demo", "-o", "bin/", "./bench/demo", "./controllers/...", "./provider/...")},
		"test": {controlPlane, build("the product", "./controllers/...", "./provider/...", "./backlog/...", "./bench/run")},
	}
	built["all"] = slices.Concat(built["test"], []step{of(binaries.BuildPrometheus), of(binaries.BuildKEDA), helmTools})
	pulsar := of(func(ctx context.Context, progress io.Writer) (distribution.Pulsar, error) {
		return distribution.Fetch(ctx, "", progress)
	})
	fetched := map[string][]step{
		"demo": {pulsar}, "test": {pulsar},
		"all": {pulsar, of(distribution.FetchPythonInstance), of(distribution.FetchClient), of(browser.Find)},
	}
	what := strings.Join(args, " ")
	if built[what] == nil {
		return nil, fmt.Errorf("%q is nothing to prepare for: it must be demo, test or all", what)
	}
	return [][]step{built[what], fetched[what]}, nil
}

// of is a step whose result stays in the cache.
func of[T any](get func(ctx context.Context, progress io.Writer) (T, error)) step {
	return func(ctx context.Context, progress io.Writer) error {
		_, err := get(ctx, progress)
		return err
	}
}

// build builds programs of ours, and compiles packages that programs and tests link later.
func build(what string, args ...string) step {
	return func(ctx context.Context, progress io.Writer) error {
		root, err := binaries.Checkout()
		if err != nil {
			return err
		}
		return binaries.Build(ctx, progress, "building "+what, root, args...)
	}
}

func helmTools(ctx context.Context, progress io.Writer) error {
	return cache.Announce(ctx, progress, "building Helm and kubectl: about 4 minutes on 2 cores",
		func(ctx context.Context) error {
			for _, name := range helm.Tools() {
				if _, err := helm.Tool(ctx, name); err != nil {
					return err
				}
			}
			return nil
		})
}

// run takes the steps of each queue one after the other, and the queues side by side, until all are done or one has
// failed. They write whole lines to progress at the same time.
func run(ctx context.Context, progress io.Writer, queues ...[]step) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, queue := range queues {
		group.Go(func() error {
			for _, take := range queue {
				if err := take(ctx, progress); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
