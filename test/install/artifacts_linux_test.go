// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/helm"
)

// variableArtifacts is the directory of images and Helm, for the process that runs the tests.
const variableArtifacts = "PULSAR_AUTOSCALER_TEST_ARTIFACTS"

// artifacts are the images, a checkout and the programs of the guides, by path.
type artifacts struct{ dir string }

func (a artifacts) image(program string) string {
	return filepath.Join(a.dir, "dist", "images", program)
}

func (a artifacts) helm() string { return filepath.Join(a.programs(), "helm") }

// programs is a directory with helm, kubectl, an image registry, and what unpacks images.
func (a artifacts) programs() string { return filepath.Join(a.dir, "bin") }

// plugin is no program of a guide: one that needs it builds it.
func (a artifacts) plugin() string { return filepath.Join(a.dir, "kubectl-pap") }

// checkout is a copy of this checkout, in which commands may write.
func (a artifacts) checkout() string { return filepath.Join(a.dir, "checkout") }

func (a artifacts) remove() error {
	if a.dir == "" {
		return nil
	}
	return os.RemoveAll(a.dir)
}

// buildArtifacts builds the artifacts into a new directory and sets variableArtifacts to it. The images are those of
// all programs, or that of the adapter.
func buildArtifacts(ctx context.Context, all bool) (a artifacts, err error) {
	if a.dir, err = os.MkdirTemp("", "pulsar-autoscaler-install-"); err != nil {
		return a, err
	}
	root, err := binaries.Checkout()
	if err != nil {
		return a, err
	}
	if err := os.Mkdir(a.programs(), 0o700); err != nil {
		return a, err
	}
	for _, name := range []string{"helm", "kubectl"} {
		tool, err := helm.Tool(ctx, name)
		if err != nil {
			return a, err
		}
		if err := os.Symlink(tool, filepath.Join(a.programs(), name)); err != nil {
			return a, err
		}
	}
	if err := copyCheckout(ctx, root, a.checkout()); err != nil {
		return a, fmt.Errorf("copying the checkout: %w", err)
	}
	if err := run(ctx, root, "go", "build", "-o", a.plugin(), "./cmd/kubectl-pap"); err != nil {
		return a, fmt.Errorf("building the plugin: %w", err)
	}
	release := filepath.Join(root, "tools", "release")
	if err := run(ctx, release, "go", "build", "-o", a.programs(), "./registry", "./unpack"); err != nil {
		return a, fmt.Errorf("building a registry, and what unpacks images: %w", err)
	}
	args := []string{
		"run", ".", "-root", a.checkout(), "-out", filepath.Join(a.dir, "dist"), "-platform", platform(),
	}
	if !all {
		args = append(args, "-program", "adapter")
	}
	if err := run(ctx, release, "go", args...); err != nil {
		return a, fmt.Errorf("building images: %w", err)
	}
	return a, os.Setenv(variableArtifacts, a.dir)
}

// platform is that of the images.
func platform() string { return "linux-" + runtime.GOARCH }

// copyCheckout copies a checkout with what is not committed, so that the go command finds the commit, also of a linked
// work tree.
func copyCheckout(ctx context.Context, root, directory string) error {
	if err := run(ctx, root, "git", "clone", "-q", "--shared", "--no-checkout", root, directory); err != nil {
		return err
	}
	if err := run(ctx, directory, "git", "reset", "-q"); err != nil {
		return err
	}
	// A deleted file is no error.
	return run(ctx, root, "/bin/sh", "-c", "git ls-files -z --cached --others --exclude-standard | "+
		`tar --create --null --files-from - | tar --extract --directory "$0"`, directory)
}

// run runs a command.
func run(ctx context.Context, dir, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
