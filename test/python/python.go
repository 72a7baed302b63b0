// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package python

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// pipGrace is short: what pip leaves behind is in temporary directories.
const pipGrace = 2 * time.Second

// ErrNoPython means that no usable Python was found.
var ErrNoPython = errors.New("no Python found")

// Python is an installed Python 3.
type Python struct {
	// Path is its executable.
	Path string
	// Tag identifies Pythons that can share packages, e.g. cpython-311-x86_64-linux-gnu.
	Tag string
}

// Find finds the interpreter behind python3 in PATH, which may be a wrapper script, in less than a second. It has its
// modules venv and ensurepip, which Debian packages separately. The error wraps ErrNoPython and says what to install.
func Find(ctx context.Context) (Python, error) {
	const advice = "install Python 3.9 or later with its module venv so that python3 is in PATH " +
		"(Debian, Ubuntu: apt-get install python3 python3-venv; Fedora: dnf install python3; macOS: brew install python)"
	const script = `import ensurepip, sys, sysconfig, venv
assert sys.version_info >= (3, 9), "it is too old"
print(sys.executable)
print(sysconfig.get_config_var("SOABI"))`
	name, err := exec.LookPath("python3")
	if err != nil {
		return Python{}, fmt.Errorf("%w: %w: %s", ErrNoPython, err, advice)
	}
	out, err := exec.CommandContext(ctx, name, "-c", script).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) && len(failed.Stderr) > 0 {
			err = errors.New(strings.TrimSpace(string(failed.Stderr)))
		}
		return Python{}, fmt.Errorf("%w that can be used: %s says %w: %s", ErrNoPython, name, err, advice)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		return Python{}, fmt.Errorf("%w that can be used: %s says %q: %s", ErrNoPython, name, out, advice)
	}
	return Python{Path: lines[0], Tag: lines[1]}, nil
}

// Install installs packages into dir, without their dependencies, with the pip of a temporary virtual environment. The
// environment cannot be kept: its scripts contain the path where it was created. requirements is the text of a
// requirements file.
func (p Python) Install(ctx context.Context, requirements []byte, dir string) (err error) {
	temporary, err := os.MkdirTemp("", "pulsar-autoscaler-venv-*")
	if err != nil {
		return fmt.Errorf("making a directory for pip: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	list := filepath.Join(temporary, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o600); err != nil {
		return fmt.Errorf("writing the list of packages: %w", err)
	}
	environment := filepath.Join(temporary, "venv")
	err = proc.Run(ctx, proc.Config{
		Name: "python3 -m venv", Path: p.Path, Args: []string{"-m", "venv", environment}, Grace: pipGrace,
	})
	if err != nil {
		return err
	}
	return proc.Run(ctx, proc.Config{
		Name: "pip install", Path: filepath.Join(environment, "bin", "python"), Grace: pipGrace,
		Args: []string{
			"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
			"--target", dir, "-r", list,
		},
	})
}
