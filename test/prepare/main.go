// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/helm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stderr, builds(), downloads()); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1) //nolint:gocritic // the process ends here
	}
}

// step puts one thing into the cache, unless it is there.
type step func(ctx context.Context, progress io.Writer) error

// builds need the processors, one at a time. What most tests need comes first.
func builds() []step {
	return []step{
		func(ctx context.Context, progress io.Writer) error {
			_, err := cluster.Binaries(ctx, progress)
			return err
		},
		func(ctx context.Context, progress io.Writer) error {
			_, err := cluster.PrometheusBinaries(ctx, progress)
			return err
		},
		func(ctx context.Context, progress io.Writer) error {
			_, err := cluster.KEDABinaries(ctx, progress)
			return err
		},
		func(ctx context.Context, progress io.Writer) error {
			for _, name := range helm.Tools() {
				if _, err := helm.Tool(ctx, name); err != nil {
					return err
				}
				if _, err := fmt.Fprintln(progress, name, "is built"); err != nil {
					return err
				}
			}
			return nil
		},
		compileImages,
	}
}

// compileImages compiles what tools/release links for images. Other tests compile the same packages with cgo.
func compileImages(ctx context.Context, progress io.Writer) error {
	root, err := helm.Checkout()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-trimpath", "-buildvcs=false", "./cmd/...")
	command.Dir = root
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the programs: %w\n%s", err, out)
	}
	_, err = fmt.Fprintln(progress, "the programs of images are compiled")
	return err
}

// downloads need the network.
func downloads() []step {
	return []step{
		func(ctx context.Context, progress io.Writer) error {
			_, err := broker.Distribution(ctx, "", progress)
			return err
		},
		func(ctx context.Context, progress io.Writer) error {
			_, err := broker.PythonInstance(ctx, progress)
			return err
		},
	}
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
