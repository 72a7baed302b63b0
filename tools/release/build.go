// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// toolchain builds everything, whatever is installed: another one gives other bytes. Its time zones go into images.
const toolchain = "go1.26.8"

// platform is an operating system and a processor, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

// serverPlatforms are what programs and images run on.
func serverPlatforms() []platform { return []platform{{"linux", "amd64"}, {"linux", "arm64"}} }

// platforms are what a program is released for: people run plugins of kubectl on their own machines.
func platforms(program string) []platform {
	if !isPlugin(program) {
		return serverPlatforms()
	}
	return append(serverPlatforms(), []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}...)
}

func isPlugin(program string) bool { return strings.HasPrefix(program, "kubectl-") }

// programs are the directories of cmd/ that hold a main package, or the one that is to be built alone. To push images
// needs no plugins.
func (r release) programs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(r.root, "cmd"))
	if err != nil {
		return nil, fmt.Errorf("listing the programs: %w", err)
	}
	var names []string
	for _, entry := range entries {
		needed := r.version != "" || !r.pushed || !isPlugin(entry.Name())
		if entry.IsDir() && entry.Name() != "internal" && needed {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("listing the programs: %s has none", filepath.Join(r.root, "cmd"))
	}
	if r.program == "" {
		return names, nil
	}
	if !slices.Contains(names, r.program) {
		return nil, fmt.Errorf("listing the programs: there is no %q: use one of %s", r.program, strings.Join(names, ", "))
	}
	return []string{r.program}, nil
}

// binary is a program for a platform.
type binary struct {
	program  string
	platform platform
	path     string
	info     *debug.BuildInfo
	// libraries are packages of npm in it.
	libraries []cdx.Component
}

// name is that of the released file.
func (b binary) name() string {
	suffix := ""
	if b.platform.os == "windows" {
		suffix = ".exe"
	}
	return b.program + "-" + b.platform.String() + suffix
}

// setting is what the toolchain recorded under the key, "" when it did not.
func (b binary) setting(key string) string {
	for _, setting := range b.info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

func (b binary) version() string { return b.info.Main.Version }

func (b binary) revision() string { return b.setting("vcs.revision") }

// committed is the time of the commit, the only time that a release knows.
func (b binary) committed() (time.Time, error) {
	committed, err := time.Parse(time.RFC3339Nano, b.setting("vcs.time"))
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the time of the commit from %s: %w", b.path, err)
	}
	return committed.UTC(), nil
}

// buildAll builds the programs for each of their platforms in dir.
func (r release) buildAll(ctx context.Context, dir string, names []string) ([]binary, error) {
	var all []binary
	for _, name := range names {
		for _, p := range platforms(name) {
			if r.only != "" && r.only != p.String() {
				continue
			}
			built, err := r.build(ctx, dir, p, name)
			if err != nil {
				return nil, fmt.Errorf("building for %s: %w", p, err)
			}
			all = append(all, built)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("platform %q is none that programs are built for: use one such as linux-amd64", r.only)
	}
	return all, nil
}

func (r release) build(ctx context.Context, dir string, p platform, name string) (binary, error) {
	b := binary{program: name, platform: p}
	b.path = filepath.Join(dir, b.name())
	// Debug information would be stripped: without it the compiled packages are those of the Makefile's builds.
	args := []string{
		"build", "-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=true", "-tags=grpcnotrace", "-ldflags=-s -w",
		"-o", b.path, "./cmd/" + name,
	}
	if _, err := r.goTool(ctx, p, args...); err != nil {
		return binary{}, err
	}
	info, err := buildinfo.ReadFile(b.path)
	if err != nil {
		return binary{}, fmt.Errorf("reading what the toolchain recorded: %w", err)
	}
	b.info = info
	if b.libraries, err = r.npmLibraries(ctx, name); err != nil {
		return binary{}, err
	}
	if b.revision() == "" {
		return binary{}, fmt.Errorf("%s names no commit: build in a git checkout, with git installed", name)
	}
	return b, r.checkVersion(b) // now: to build all of them takes minutes
}

// goTool runs the pinned toolchain in the checkout. Of the environment it takes nothing that changes what is built.
func (r release) goTool(ctx context.Context, p platform, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = r.root
	command.Env = append(os.Environ(), "GOTOOLCHAIN="+toolchain, "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=",
		"GOFIPS140=off", "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0")
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return "", errors.Join(fmt.Errorf("go %s: %w", strings.Join(args, " "), err), errors.New(problems.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
