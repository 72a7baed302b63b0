// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/node"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
)

// TestMain runs the tests in the namespaces of a node. Downloads come first: a node has no network.
func TestMain(m *testing.M) {
	all := flag.Bool("all", false, "run all tests, not only TestTheGuidesWork")
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var built artifacts
	code, done := node.Main(ctx, func(ctx context.Context) (err error) {
		built, err = prepare(ctx, *all)
		return err
	})
	if done {
		stop()
		_ = built.remove() // leftovers are in the temporary directory
		os.Exit(code)
	}
	stop()
	shared.Main(m, theScene)
}

// prepare builds and downloads all that tests run.
func prepare(ctx context.Context, all bool) (artifacts, error) {
	if _, err := binaries.BuildControlPlane(ctx, os.Stderr); err != nil {
		return artifacts{}, err
	}
	if _, err := distribution.Fetch(ctx, "", os.Stderr); err != nil {
		return artifacts{}, err
	}
	if _, err := binaries.BuildKEDA(ctx, os.Stderr); err != nil {
		return artifacts{}, err
	}
	return buildArtifacts(ctx, all)
}
