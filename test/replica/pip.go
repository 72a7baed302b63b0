// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
)

// ErrNoPython means that no usable Python was found.
var ErrNoPython = errors.New("no Python found")

//go:embed python
var pythonFiles embed.FS

// python is an installed Python 3.
type python struct {
	path string
	// tag identifies Pythons that can share packages, e.g. cpython-311-x86_64-linux-gnu.
	tag string
}

// findPython finds the interpreter behind python3 in PATH, which may be a wrapper script.
func findPython(ctx context.Context) (python, error) {
	const advice = "install Python 3.9 or later with its module venv so that python3 is in PATH " +
		"(apt-get install python3 python3-venv, brew install python)"
	const ask = `import ensurepip, sys, sysconfig, venv
assert sys.version_info >= (3, 9), "it is too old"
print(sys.executable)
print(sysconfig.get_config_var("SOABI"))`
	name, err := exec.LookPath("python3")
	if err != nil {
		return python{}, fmt.Errorf("%w: %w: %s", ErrNoPython, err, advice)
	}
	out, err := exec.CommandContext(ctx, name, "-c", ask).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = errors.New(strings.TrimSpace(string(failed.Stderr)))
		}
		return python{}, fmt.Errorf("%w that can be used: %s says %w: %s", ErrNoPython, name, err, advice)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		return python{}, fmt.Errorf("%w that can be used: %s says %q: %s", ErrNoPython, name, out, advice)
	}
	return python{path: lines[0], tag: lines[1]}, nil
}

// pythonPackages returns the directory of the packages that an instance imports, installed once per Python and list.
func pythonPackages(ctx context.Context, kit python, progress io.Writer) (dir string, err error) {
	list, err := pythonFiles.ReadFile("python/requirements.txt")
	if err != nil {
		return "", fmt.Errorf("reading the list of Python packages: %w", err)
	}
	key := fmt.Sprintf("python-%s-%x", kit.tag, sha256.Sum256(list))[:len("python-")+len(kit.tag)+9]
	dir, err = cache.Fill(ctx, key, progress, func(ctx context.Context, dir string) error {
		return cache.Announce(ctx, progress, "getting pulsar-client[functions] from PyPI (once)",
			func(ctx context.Context, _ *cache.Count) error {
				return install(ctx, kit, list, dir)
			})
	})
	if err != nil {
		return "", fmt.Errorf("getting Python packages: %w", err)
	}
	return dir, nil
}

// install installs packages into dir with the pip of a temporary virtual environment. The environment cannot be kept:
// its scripts contain the path where it was created.
func install(ctx context.Context, kit python, list []byte, dir string) (err error) {
	temporary, err := os.MkdirTemp("", "pulsar-autoscaler-venv-*")
	if err != nil {
		return fmt.Errorf("making a directory for pip: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	names := filepath.Join(temporary, "requirements.txt")
	if err := os.WriteFile(names, list, 0o600); err != nil {
		return fmt.Errorf("writing the list of packages: %w", err)
	}
	environment := filepath.Join(temporary, "venv")
	if err := runTool(ctx, "python3 -m venv", kit.path, "-m", "venv", environment); err != nil {
		return err
	}
	return runTool(ctx, "pip install", filepath.Join(environment, "bin", "python"), "-m", "pip", "install", "--quiet",
		"--disable-pip-version-check", "--no-input", "--no-deps", "--target", dir, "-r", names)
}
