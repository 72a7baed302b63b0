// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
)

// Tools are the names for Tool.
func Tools() []string { return []string{"helm", "helm-unittest", "kubectl"} }

// Tool returns the path of a tool of tools/helm, and builds it unless it is cached.
func Tool(ctx context.Context, name string) (string, error) {
	root, err := binaries.Checkout()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "tool", "-n", name)
	command.Dir = filepath.Join(root, "tools", "helm")
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := run(command)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Chart is the path of the chart.
func Chart() (string, error) {
	root, err := binaries.Checkout()
	return filepath.Join(root, "deploy", "chart"), err
}

// Template renders the chart for a release with a namespace of the same name, without a cluster.
func Template(ctx context.Context, args ...string) ([]byte, error) {
	tool, err := Tool(ctx, "helm")
	if err != nil {
		return nil, err
	}
	chart, err := Chart()
	if err != nil {
		return nil, err
	}
	const name = "pulsar-autoscaler"
	all := append([]string{"template", name, chart, "--namespace", name, "--no-hooks"}, args...)
	return run(exec.CommandContext(ctx, tool, all...))
}

func run(command *exec.Cmd) ([]byte, error) {
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path), err, problems.String())
	}
	return out, nil
}
