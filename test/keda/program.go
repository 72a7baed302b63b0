// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"net"
	"net/http"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// Program is one of KEDA's processes.
type Program struct {
	*proc.Program

	// MetricsURL serves its metrics in Prometheus' format.
	MetricsURL string

	ready func(ctx context.Context) (bool, string, error)
}

// Wait returns when the program works.
func (p *Program) Wait(ctx context.Context) error {
	return cluster.WaitReady(ctx, p.Process(), p.ready)
}

// Restart restarts the process, also a running one, and returns when it works.
func (p *Program) Restart(ctx context.Context) error {
	p.Kill()
	if err := p.Launch(); err != nil {
		return err
	}
	return p.Wait(ctx)
}

// operatorReady checks the operator's readiness, and that it listens for the metrics server.
func operatorReady(port ports) func(ctx context.Context) (bool, string, error) {
	return func(ctx context.Context) (bool, string, error) {
		is, said, err := cluster.Answers(ctx, http.DefaultClient, "http://"+local(port.health)+"/readyz")
		if !is || err != nil {
			return false, said, err
		}
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", local(port.service))
		if err != nil {
			return false, "", err
		}
		return true, "", connection.Close()
	}
}
