// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/helm"
)

// variableArtifacts is the directory of images and Helm, for the process that runs the tests.
const variableArtifacts = "PULSAR_AUTOSCALER_TEST_ARTIFACTS"

// artifacts are the images and Helm, by path.
type artifacts struct{ dir string }

func (a artifacts) image(program string) string {
	return filepath.Join(a.dir, "dist", "images", program)
}

func (a artifacts) helm() string { return filepath.Join(a.dir, "helm") }

func (a artifacts) remove() error {
	if a.dir == "" {
		return nil
	}
	return os.RemoveAll(a.dir)
}

// buildArtifacts builds Helm and the image of the adapter, or the images of all programs, into a new directory and sets
// variableArtifacts to it.
func buildArtifacts(ctx context.Context, all bool) (a artifacts, err error) {
	if a.dir, err = os.MkdirTemp("", "pulsar-autoscaler-install-"); err != nil {
		return a, err
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return a, err
	}
	tool, err := helm.Tool(ctx, "helm")
	if err != nil {
		return a, err
	}
	if err := os.Symlink(tool, a.helm()); err != nil {
		return a, err
	}
	checkout, err := stamped(ctx, root, filepath.Join(a.dir, "checkout"))
	if err != nil {
		return a, fmt.Errorf("copying the checkout: %w", err)
	}
	args := []string{
		"run", ".", "-root", checkout, "-out", filepath.Join(a.dir, "dist"), "-platform", "linux-" + runtime.GOARCH,
	}
	if !all {
		args = append(args, "-program", "adapter")
	}
	if _, err := run(ctx, filepath.Join(root, "tools", "release"), "go", args...); err != nil {
		return a, fmt.Errorf("building images: %w", err)
	}
	return a, os.Setenv(variableArtifacts, a.dir)
}

// stamped returns a checkout in which the go command finds the commit: root itself, or a copy of it if root is a linked
// work tree.
func stamped(ctx context.Context, root, directory string) (string, error) {
	if info, err := os.Stat(filepath.Join(root, ".git")); err != nil || info.IsDir() {
		return root, err
	}
	if _, err := run(ctx, root, "git", "clone", "-q", "--shared", "--no-checkout", root, directory); err != nil {
		return "", err
	}
	if _, err := run(ctx, directory, "git", "reset", "-q"); err != nil {
		return "", err
	}
	list, err := run(ctx, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return "", err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(directory, name), filepath.Join(root, name)); err != nil {
			return "", err
		}
	}
	return directory, nil
}

// copyFile copies a file. A deleted one is no error.
func copyFile(to, from string) (err error) {
	source, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// run runs a command and returns its output.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, problems.String(), out.String())
	}
	return out.String(), nil
}
