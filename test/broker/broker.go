// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/jdk"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	// startTimeout bounds a start that hangs; one that exits fails at once. A start takes 9 s on two idle cores, and 95 s
	// beside 30 busy processes.
	startTimeout = 4 * time.Minute
	// stopGrace: a graceful stop takes 2 to 5 s.
	stopGrace = 15 * time.Second
)

//go:embed conf
var files embed.FS

// Config configures a broker; its zero value is a default broker.
type Config struct {
	// Version of Pulsar, one of Versions; empty is $PULSAR, else 4.0.8.
	Version string
	// Progress gets the progress of a download and the start; nil for none.
	Progress io.Writer
	// Settings are added to standalone.conf and override its keys.
	Settings map[string]string
	// Token authenticates the admin calls of this package, if Settings require it.
	Token string
	// WithoutWorker leaves out the function worker, which saves about 2 s of a start.
	WithoutWorker bool
	// Kubernetes is where the worker runs functions as StatefulSets; nil for threads.
	Kubernetes *Kubernetes
	// JVMFlags are added to the broker's and override them, e.g. "-Xmx2g".
	JVMFlags []string
}

// ports are the listeners of the broker, kept over restarts.
type ports struct{ service, admin int }

// Broker is a started standalone broker. Its methods may be called from any goroutine. The data of a killed broker
// stays until Stop, for Restart.
type Broker struct {
	*proc.Program

	config Config
	dist   distribution.Pulsar
	dir    string
	ports  ports
	client *http.Client
}

// Start runs a broker and returns when it is ready: healthy, with the namespace public/default and, unless
// WithoutWorker, a worker that has a leader. The broker lives until Stop, Kill or the end of ctx. After an error
// nothing runs.
func Start(ctx context.Context, config Config) (*Broker, error) {
	if config.Kubernetes != nil && config.WithoutWorker {
		return nil, errors.New("broker.Config.Kubernetes is set: it needs a worker, but WithoutWorker is set too")
	}
	kit, err := jdk.Find()
	if err != nil {
		return nil, err
	}
	dist, err := distribution.Fetch(ctx, config.Version, config.Progress)
	if err != nil {
		return nil, err
	}
	b := &Broker{config: config, dist: dist, client: newClient()}
	if err := b.prepare(); err != nil {
		return nil, errors.Join(err, b.clean())
	}
	b.Program = proc.NewProgram(ctx, proc.Config{
		Name: "pulsar " + dist.Version, Path: kit.Java(), Args: arguments(kit, dist, b.dir, config),
		Dir: b.dir, Env: config.Kubernetes.environment(), LogPath: filepath.Join(b.dir, "broker.log"), Grace: stopGrace,
	})
	err = b.run(ctx)
	if err != nil && workerTimedOut(b.LogTail(scannedLines)) {
		if config.Progress != nil {
			_, _ = fmt.Fprintf(config.Progress, "starting another broker: %v\n", err) // progress only
		}
		err = errors.Join(os.RemoveAll(filepath.Join(b.dir, "data")), b.run(ctx))
	}
	if err != nil {
		return nil, errors.Join(err, b.clean())
	}
	return b, nil
}

// workerTimedOut reports whether the broker ended because it did not create a topic of its own function worker within
// 60 s: 72 s later its threads still hung. It was one of some thousand starts, and none of 110 on a busy machine.
//
// Source: Pulsar 4.0.8; deadlocks of its metadata callbacks are known, such as apache/pulsar#22840.
func workerTimedOut(log string) bool {
	return strings.Contains(log, "PulsarAdminException$TimeoutException") &&
		strings.Contains(log, "PulsarWorkerService.tryCreateNonPartitionedTopic")
}

// prepare creates a temporary directory to work in and its configuration, and picks the ports.
func (b *Broker) prepare() error {
	free, err := proc.FreePorts(2)
	if err != nil {
		return err
	}
	b.ports = ports{service: free[0], admin: free[1]}
	if b.dir, err = os.MkdirTemp("", "pulsar-autoscaler-broker-*"); err != nil {
		return fmt.Errorf("making the broker's directory: %w", err)
	}
	for _, dir := range []string{"conf", "data", "tmp"} {
		if err := os.MkdirAll(filepath.Join(b.dir, dir), 0o750); err != nil {
			return fmt.Errorf("making the broker's directory: %w", err)
		}
	}
	contents := map[string][]byte{"standalone.conf": render(settings(b.ports, b.config.Settings))}
	if contents["log4j2.xml"], err = files.ReadFile("conf/log4j2.xml"); err != nil {
		return fmt.Errorf("reading the broker's configuration: %w", err)
	}
	if contents["functions_worker.yml"], err = b.workerConfig(); err != nil {
		return err
	}
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(b.dir, "conf", name), content, 0o600); err != nil {
			return fmt.Errorf("writing the broker's configuration: %w", err)
		}
	}
	return nil
}

// run starts the process and waits until it is ready; it kills a broker that does not become ready.
func (b *Broker) run(ctx context.Context) error {
	if err := b.Launch(); err != nil {
		return err
	}
	b.client.CloseIdleConnections() // those of the previous start
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := b.awaitReady(ctx, b.Process()); err != nil {
		b.Kill()
		return fmt.Errorf("starting pulsar %s: %w", b.dist.Version, err)
	}
	return nil
}

// clean removes the directory, if there is one.
func (b *Broker) clean() error {
	b.client.CloseIdleConnections()
	if b.dir == "" {
		return nil
	}
	if err := os.RemoveAll(b.dir); err != nil {
		return fmt.Errorf("removing the broker's directory: %w", err)
	}
	return nil
}

// Stop stops the broker gracefully, or by SIGKILL after 15 s, also a paused one, and removes its temporary directory.
// It may be called again, and after Kill.
func (b *Broker) Stop() error {
	if err := b.Program.Stop(); err != nil && !errors.Is(err, proc.ErrKilled) {
		return err
	}
	return b.clean()
}

// Discard kills the broker and removes its temporary directory, 4 s faster than Stop.
func (b *Broker) Discard() error {
	b.Kill()
	return b.clean()
}

// Restart stops a running broker gracefully, and starts it again on the same ports with its data: topics, subscriptions
// and backlog are kept, counters restart at 0. ctx bounds the wait; the broker lives as long as in Start. Only one
// Restart may run at a time.
//
// Functions of the thread runtime do not restart by themselves: the worker fetches their package before the web server
// responds (503), and did not retry within 75 s. POST /admin/v3/functions/{tenant}/{namespace}/{name}/restart restarts
// them at once.
func (b *Broker) Restart(ctx context.Context) error {
	if err := b.Program.Stop(); err != nil && !errors.Is(err, proc.ErrKilled) {
		return err
	}
	if _, err := os.Stat(filepath.Join(b.dir, "data")); err != nil {
		return fmt.Errorf("restarting pulsar %s: Stop or Discard removed its data: %w", b.dist.Version, err)
	}
	for range mostFlaps {
		if err := b.run(ctx); err != nil || !flaps(b.LogTail(scannedLines)) {
			return err
		}
		if err := b.Program.Stop(); err != nil && !errors.Is(err, proc.ErrKilled) {
			return err
		}
	}
	return fmt.Errorf("restarting pulsar %s: its bookie flapped %d times", b.dist.Version, mostFlaps)
}

// Dist is the distribution that the broker runs.
func (b *Broker) Dist() distribution.Pulsar { return b.dist }

// Version is the version of Pulsar, e.g. "4.0.8".
func (b *Broker) Version() string { return b.dist.Version }

// AdminURL is the base of the broker's and worker's REST APIs, e.g. "http://127.0.0.1:16080".
func (b *Broker) AdminURL() string { return fmt.Sprintf("http://127.0.0.1:%d", b.ports.admin) }

// ServiceURL is the address for Pulsar clients, e.g. "pulsar://127.0.0.1:16650".
func (b *Broker) ServiceURL() string { return fmt.Sprintf("pulsar://127.0.0.1:%d", b.ports.service) }
