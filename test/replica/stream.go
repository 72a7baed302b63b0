// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"io"
	"path/filepath"
	"strconv"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/jdk"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// Stream runs replicas that are StreamConsumers of Pulsar's V5 client on a scalable topic, one local process each.
type Stream struct {
	instances
	kit  jdk.JDK
	jars string
}

var _ Runner = (*Stream)(nil)

// NewStream returns a runner that calls completed for each processed message. Close it after its replicas.
func NewStream(ctx context.Context, progress io.Writer, completed func(Completion)) (_ *Stream, err error) {
	s := &Stream{instances: instances{completed: completed}}
	if s.kit, err = jdk.Find(); err != nil {
		return nil, err
	}
	if s.jars, err = distribution.FetchClient(ctx, progress); err != nil {
		return nil, err
	}
	return s, s.open(ctx)
}

// command runs the source without a compiled class.
func (s *Stream) command(args ...string) proc.Config {
	flags := append(broker.JVMFlags(s.kit), "-Xmx128m", "-XX:MaxDirectMemorySize=128m", "-cp",
		filepath.Join(s.jars, "*"), s.source("stream/StreamReplica.java"))
	return proc.Config{Path: s.kit.Java(), Args: append(flags, args...)}
}

// Start starts a process that consumes the first topic of the instance.
func (s *Stream) Start(ctx context.Context, in Instance) (Replica, error) {
	return s.start(ctx, in, "", func(in Instance, args arguments) proc.Config {
		return s.command("consume", in.ServiceURL, in.Topics[0], in.Subscription, args.config)
	})
}

// Publish publishes messages with distinct keys, one an entry, and returns when Pulsar has stored them.
func (s *Stream) Publish(ctx context.Context, serviceURL, topic string, messages int) error {
	config := s.command("publish", serviceURL, topic, strconv.Itoa(messages))
	config.Name, config.Dir, config.Grace = "a V5 producer", s.dir, stopGrace
	return proc.Run(ctx, config)
}
