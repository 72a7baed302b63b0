// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
)

const (
	// compilerGC lets the compiler collect its garbage later than by default, which saves a tenth of a build.
	compilerGC = "GOGC=400"
	// buildGrace is how long a build that is interrupted may take to end its compilers.
	buildGrace = 2 * time.Second
	// buildLines of a build that failed go into its error.
	buildLines = 30
)

// Build builds packages of the module in dir with "go build", announced as what. args are flags and packages.
func Build(ctx context.Context, progress io.Writer, what, dir string, args ...string) error {
	return cache.Announce(ctx, progress, what, func(ctx context.Context, count *cache.Count) error {
		return goBuild(ctx, dir, count, args...)
	})
}

// goBuild runs "go build" in dir, and counts the packages that are compiled. With the GOFLAGS of the Makefile it shares
// packages with all other builds.
func goBuild(ctx context.Context, dir string, count *cache.Count, args ...string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("finding the go command: %w: install Go 1.26 or newer from https://go.dev/dl and put it into PATH",
			err)
	}
	env := append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, compilerGC)
	all, err := stale(ctx, tool, dir, env, args)
	if err != nil {
		return err
	}
	count.Of(all, "packages")
	build := exec.CommandContext(ctx, tool, append([]string{"build", "-v"}, args...)...)
	build.Dir, build.Env, build.WaitDelay = dir, env, buildGrace
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) } // the go command ends its compilers
	told, err := build.StderrPipe()
	if err != nil {
		return fmt.Errorf("reading what go build prints: %w", err)
	}
	if err := build.Start(); err != nil {
		return fmt.Errorf("starting go build: %w", err)
	}
	problems := readNames(told, count)
	if err := build.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("running go build: %w\n%s", err, problems)
	}
	return nil
}

// stale is the number of packages that a build with these arguments compiles.
func stale(ctx context.Context, tool, dir string, env, args []string) (int, error) {
	flags := slices.Clone(args)
	if i := slices.Index(flags, "-o"); i >= 0 { // build alone has it
		flags = slices.Delete(flags, i, i+2)
	}
	list := exec.CommandContext(ctx, tool, append([]string{
		"list", "-deps", "-f", "{{if .Stale}}.{{end}}",
	}, flags...)...)
	list.Dir, list.Env = dir, env
	var problems bytes.Buffer
	list.Stderr = &problems
	out, err := list.Output()
	if err != nil {
		return 0, fmt.Errorf("listing the packages to build: %w\n%s", err, problems.String())
	}
	return bytes.Count(out, []byte(".")), nil
}

// readNames counts lines that are import paths, which go build -v prints as it compiles, and returns the end of all
// others: what is wrong.
func readNames(told io.Reader, count *cache.Count) (problems string) {
	var others []string
	lines := bufio.NewScanner(told)
	for lines.Scan() {
		line := lines.Text()
		if line != "" && !strings.ContainsAny(line, " \t:") && !strings.HasPrefix(line, "#") {
			count.Add(1)
			continue
		}
		others = append(others, line)
		others = others[max(0, len(others)-buildLines):]
	}
	return strings.Join(others, "\n")
}
