// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// instances runs Pulsar's own function instances, one local process each. Java and Python share it.
type instances struct {
	completed func(Completion)
	// root is that of the checkout, and dir the directory of what they write.
	root, dir string
	collector *collector
	running   sync.WaitGroup
}

// open makes the directory, and starts the collector.
func (i *instances) open(ctx context.Context) (err error) {
	if i.completed == nil {
		i.completed = func(Completion) {}
	}
	if i.root, err = binaries.Checkout(); err != nil {
		return err
	}
	if i.dir, err = os.MkdirTemp("", "pulsar-autoscaler-instances-*"); err != nil {
		return fmt.Errorf("making a directory for function instances: %w", err)
	}
	if i.collector, err = newCollector(ctx); err != nil {
		return errors.Join(err, os.RemoveAll(i.dir))
	}
	return nil
}

// source is the path of one of our files.
func (i *instances) source(name string) string { return filepath.Join(i.root, "test", "replica", name) }

// arguments are the command-line arguments of one instance.
type arguments struct {
	// details describe the function as the worker does; config is its user configuration.
	details, config       string
	grpcPort, metricsPort int
}

// start starts a process of the function class with the command, and sets the name and the grace period of the command.
func (i *instances) start(
	ctx context.Context, in Instance, class string, command func(in Instance, args arguments) proc.Config,
) (Replica, error) {
	in = in.withDefaults()
	ports, err := proc.FreePorts(2)
	if err != nil {
		return nil, err
	}
	args := arguments{grpcPort: ports[0], metricsPort: ports[1]}
	token := rand.Text()
	if args.config, err = configure(in, i.collector.addr(), token); err != nil {
		return nil, err
	}
	if args.details, err = describe(in, class, args.config); err != nil {
		return nil, err
	}
	p := &Process{
		in: in, completed: i.completed, url: fmt.Sprintf("http://127.0.0.1:%d/metrics", args.metricsPort),
		ready: make(chan struct{}),
	}
	i.collector.expect(token, p.connected)
	config := command(in, args)
	config.Name, config.Dir, config.Grace = fmt.Sprintf("function %s:%d", in.FQFN(), in.ID), i.dir, stopGrace
	if p.Process, err = proc.Start(ctx, config); err != nil {
		i.collector.forget(token)
		return nil, err
	}
	i.running.Go(func() {
		<-p.Done()
		i.collector.forget(token)
	})
	return p, nil
}

// Close waits until the replicas have ended, and removes their files. Stop the replicas first.
func (i *instances) Close() error {
	i.running.Wait()
	return errors.Join(i.collector.close(), os.RemoveAll(i.dir))
}
