// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
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
	err := cluster.WaitFor(ctx, p.Name()+" to work", pollEvery, func(ctx context.Context) (bool, string, error) {
		if err := p.Ended(); err != nil {
			return false, "", err
		}
		return p.ready(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w; its last lines:\n%s", err, p.LogTail(logLines))
	}
	return nil
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
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local(port.health)+"/readyz", http.NoBody)
		if err != nil {
			return false, "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err.Error(), nil
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			return false, "/readyz: " + response.Status, nil
		}
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", local(port.service))
		if err != nil {
			return false, err.Error(), nil
		}
		return true, "", connection.Close()
	}
}
