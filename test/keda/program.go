// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"net"
	"net/http"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// Program is one of KEDA's processes.
type Program struct {
	cluster.Program

	// MetricsURL serves its metrics in Prometheus' format.
	MetricsURL string
}

// operatorReady checks the operator's readiness, and that it listens for the metrics server.
func operatorReady(port ports) cluster.Condition {
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
