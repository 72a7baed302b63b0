// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/jdk"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	asyncClass   = "pulsarautoscaler.PacedAsyncFunction"
	flatClass    = "pulsarautoscaler.FlatInstance"
	compileGrace = 2 * time.Second
)

// Classes in Jar for a function worker.
const (
	// FunctionClass takes the user configuration of PacedFunction.java.
	FunctionClass = "pulsarautoscaler.PacedFunction"
	// SinkClass discards every message.
	SinkClass = "pulsarautoscaler.DiscardingSink"
	// SourceClass produces no messages.
	SourceClass = "pulsarautoscaler.SilentSource"
	// BatchSourceClass discovers five tasks of one message each, once. TriggererClass starts the discovery.
	BatchSourceClass = "pulsarautoscaler.BatchOfTasks"
	TriggererClass   = "pulsarautoscaler.TriggerOnce"
)

// Jar returns the path of the jar with our functions and connectors, for a function worker. It is compiled once per
// source, distribution and JDK. Errors are those of NewJava.
func Jar(ctx context.Context, dist distribution.Pulsar, progress io.Writer) (string, error) {
	kit, err := jdk.Find()
	if err != nil {
		return "", err
	}
	key, files, err := fingerprint(kit, dist)
	if err != nil {
		return "", err
	}
	dir, err := cache.Fill(ctx, key, progress, func(ctx context.Context, dir string) error {
		args := append([]string{
			"-d", filepath.Join(dir, "classes"), "-cp", filepath.Join(dist.Lib, "*"), "-proc:none", "--release",
			"17",
		}, files...)
		return errors.Join(
			runTool(ctx, "javac", kit.Javac(), args...),
			runTool(ctx, "jar", kit.Jar(), "--create", "--file", filepath.Join(dir, "function.jar"), "-C",
				filepath.Join(dir, "classes"), "."),
		)
	})
	if err != nil {
		return "", fmt.Errorf("compiling the function: %w", err)
	}
	return filepath.Join(dir, "function.jar"), nil
}

// fingerprint identifies the sources of the jar: our functions, and the example that they extend.
func fingerprint(kit jdk.JDK, dist distribution.Pulsar) (key string, files []string, err error) {
	root, err := binaries.Checkout()
	if err != nil {
		return "", nil, err
	}
	hash, tree := sha256.New(), os.DirFS(root)
	_, _ = fmt.Fprintf(hash, "%s %s\n", kit.Version, dist.Version) // a hash never fails
	for _, dir := range []string{"test/replica/java", "examples/functions/java/src"} {
		err := fs.WalkDir(tree, dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".java" {
				return err
			}
			text, err := fs.ReadFile(tree, name)
			files = append(files, filepath.Join(root, name))
			_, _ = fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
			return err
		})
		if err != nil {
			return "", nil, fmt.Errorf("reading the source of the function: %w", err)
		}
	}
	return fmt.Sprintf("function-%x", hash.Sum(nil)[:8]), files, nil
}

// runTool runs a command of the JDK.
func runTool(ctx context.Context, name, path string, args ...string) error {
	return proc.Run(ctx, proc.Config{Name: name, Path: path, Args: args, Grace: compileGrace})
}
