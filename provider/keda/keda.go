// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Signals reads what was measured, from the cache.
type Signals interface {
	// Read returns what is known of the subject's subscription. A request for one that is not tracked starts to track it
	// for a few minutes and fails with backlog.ErrNoData until the first answer is in. An object that does not exist is
	// an API server's NotFound, a connection that does not exist or may not be used backlog.ErrUnsupported; any other
	// error says why the signal is unknown, in words for the user.
	Read(subject Subject, now time.Time) (backlog.Reading, error)
}

// ScaledObjects reads from the cache how many replicas ScaledObjects have.
type ScaledObjects interface {
	// Replicas returns spec.replicas of the ScaledObject's target, or why it is unknown.
	Replicas(key types.NamespacedName) (int32, error)
}
