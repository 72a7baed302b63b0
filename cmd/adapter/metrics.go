// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/program"
)

// registerMetrics registers the metrics of the program itself.
func (a *adapter) registerMetrics(registerer prometheus.Registerer) error {
	leader := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pulsar_autoscaler_leader", Help: "1 on the replica that decides, which holds the Lease; 0 on the others.",
	}, func() float64 {
		if a.leads() {
			return 1
		}
		return 0
	})
	if err := errors.Join(registerer.Register(leader), registerer.Register(program.BuildInfo())); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// leads reports whether this replica holds the Lease.
func (a *adapter) leads() bool {
	select {
	case <-a.manager.Elected():
		return a.fence.Held() == nil
	default:
		return false
	}
}
