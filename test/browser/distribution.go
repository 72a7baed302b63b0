// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// fromDistribution installs the package chromium, where this process may.
func fromDistribution(ctx context.Context, progress io.Writer) (path string, err error) {
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", errors.New("apt-get is for root on Debian and Ubuntu")
	}
	err = cache.Announce(ctx, progress, "installing Chromium with apt-get (some 300 MB, once)",
		func(ctx context.Context, _ *cache.Count) error { return install(ctx, apt) })
	if err != nil {
		return "", err
	}
	return installed(ctx, progress)
}

func install(ctx context.Context, apt string) error {
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	run := func(args ...string) error {
		return proc.Run(ctx, proc.Config{
			Name: "apt-get " + args[0], Path: apt, Args: append(args, "-o", "DPkg::Lock::Timeout=300"), Grace: grace,
			Env: []string{"DEBIAN_FRONTEND=noninteractive"},
		})
	}
	updated := run("update") // another process may be updating: what it left may do
	if err := run("install", "-y", "--no-install-recommends", "chromium"); err != nil {
		return fmt.Errorf("installing Chromium: %w", errors.Join(updated, err))
	}
	return nil
}
