// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Policies reads policies from the cache.
type Policies interface {
	// Policy returns the policy, or an API server's NotFound; backlog.ErrNoData while policies are being read, and
	// backlog.ErrUnsupported if the kind is not installed. The caller must not change it.
	Policy(key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error)
}

// DecisionMaker is the process that decides for all policies.
type DecisionMaker interface {
	// Current fails when no replica of the adapter decides now, or none has decided for the policy lately. The error is a
	// text for the user with the time, and has a method Since() time.Time if that is known.
	Current(p *v1alpha1.AutoscalingPolicy, now time.Time) error
}
