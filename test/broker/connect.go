// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
)

// connectTimeout bounds a connection, and operationTimeout a request with its retries, longer than a machine stalls.
const (
	connectTimeout   = 10 * time.Second
	operationTimeout = time.Minute
)

// Connect returns a client of Pulsar's binary protocol that logs and registers nothing; an empty token is for brokers
// without authentication. It connects on first use.
func Connect(serviceURL, token string) (pulsar.Client, error) {
	options := pulsar.ClientOptions{
		URL: serviceURL, Logger: log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry(),
		ConnectionTimeout: connectTimeout, OperationTimeout: operationTimeout,
	}
	if token != "" {
		options.Authentication = pulsar.NewAuthenticationToken(token)
	}
	client, err := pulsar.NewClient(options)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", serviceURL, err)
	}
	return client, nil
}
