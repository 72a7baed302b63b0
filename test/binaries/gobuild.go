// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
)

const (
	// compilerGC lets the compiler collect its garbage later than by default, which saves a tenth of a build.
	compilerGC = "GOGC=400"
	// buildGrace is how long a build that is interrupted may take to end its compilers.
	buildGrace = 2 * time.Second
)

// Build builds packages of the module in dir with "go build", announced as what. args are flags and packages.
func Build(ctx context.Context, progress io.Writer, what, dir string, args ...string) error {
	return cache.Announce(ctx, progress, what, func(ctx context.Context) error { return goBuild(ctx, dir, args...) })
}

// goBuild runs "go build" in dir. With the GOFLAGS of the Makefile it shares packages with all other builds.
func goBuild(ctx context.Context, dir string, args ...string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("finding the go command: %w: install Go 1.26 or newer from https://go.dev/dl and put it into PATH",
			err)
	}
	build := exec.CommandContext(ctx, tool, append([]string{"build"}, args...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
		compilerGC)
	build.Dir, build.WaitDelay = dir, buildGrace
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) } // the go command ends its compilers
	problems, err := build.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("running go build: %w\n%s", err, problems)
	}
	return nil
}
