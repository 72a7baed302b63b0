// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Signals reads measurements from the cache.
type Signals interface {
	// Read returns the reading of the subject's subscription. A request for one that is not tracked starts to track it for
	// a few minutes and fails with backlog.ErrNoData until the first response. A missing object is an API server's
	// NotFound, a connection that does not exist or may not be used backlog.ErrUnsupported; any other error is why the
	// signal is unknown, as a text for the user.
	Read(subject Subject, now time.Time) (backlog.Reading, error)
}

// ScaledObjects reads the replicas of ScaledObjects from the cache.
type ScaledObjects interface {
	// Replicas returns spec.replicas of the ScaledObject's target, or why it is unknown.
	Replicas(key types.NamespacedName) (int32, error)
}
