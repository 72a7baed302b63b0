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
	"regexp"
	"strings"
	"time"
)

// Variable is the environment variable that selects a browser.
const Variable = "CHROME"

// ErrNoBrowser means that no Chromium was found and none could be brought.
var ErrNoBrowser = errors.New("no Chromium found")

const (
	advice = "install Chromium (Debian: apt-get install chromium; Ubuntu: snap install chromium; " +
		"Fedora: dnf install chromium; macOS: brew install --cask google-chrome), or set " + Variable + " to its path"
	// startTime is for --version on a busy machine: it starts no page.
	startTime = 30 * time.Second
)

// names are looked up in PATH, and as they are if they are paths.
func names() []string {
	return []string{
		"chromium", "chromium-browser", "google-chrome", "chrome", "headless-shell",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
	}
}

// way brings a Chromium and returns its path.
type way func(ctx context.Context, progress io.Writer) (path string, err error)

// Find returns the path of a Chromium that runs. The first call on a machine without a browser downloads one into the
// cache, 130 MB in about 30 s, reported to progress (nil for none). Errors wrap ErrNoBrowser, say
// what was tried and what to install.
func Find(ctx context.Context, progress io.Writer) (path string, err error) {
	return find(ctx, progress, installed, packaged)
}

func find(ctx context.Context, progress io.Writer, ways ...way) (path string, err error) {
	if chosen := os.Getenv(Variable); chosen != "" {
		if err := runs(ctx, chosen); err != nil {
			return "", fmt.Errorf("%w: $%s: %w: correct or unset it", ErrNoBrowser, Variable, err)
		}
		return chosen, nil
	}
	var tried []error
	for _, take := range ways {
		path, err := take(ctx, progress)
		if err == nil {
			err = runs(ctx, path)
		}
		if err == nil {
			return path, nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("finding a Chromium: %w", ctx.Err())
		}
		tried = append(tried, err)
	}
	return "", fmt.Errorf("%w: %w\n%s", ErrNoBrowser, errors.Join(tried...), advice)
}

// installed finds the first browser in PATH that runs.
func installed(ctx context.Context, _ io.Writer) (path string, err error) {
	var tried []error
	for _, name := range names() {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if err := runs(ctx, path); err != nil {
			tried = append(tried, err)
			continue
		}
		return path, nil
	}
	if len(tried) == 0 {
		return "", errors.New("none is in PATH")
	}
	return "", errors.Join(tried...)
}

var versionNumber = regexp.MustCompile(`\d+\.\d+`)

// runs is nil if a browser prints its version. The command of a snap that is not installed does not.
func runs(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	command := exec.CommandContext(ctx, path, "--version")
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s --version: %w: %s", path, err, strings.TrimSpace(string(out)))
	}
	if !versionNumber.Match(out) {
		return fmt.Errorf("%s --version prints no version, but %q", path, out)
	}
	return nil
}
