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
	// backlog.ErrUnsupported where the kind is not installed. It is not changed by the caller.
	Policy(key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error)
}

// DecisionMaker is the process that decides for all policies.
type DecisionMaker interface {
	// Current fails when no replica of the adapter decides now, or has decided for the policy lately. The error says since
	// when, in words for the user, and with a method Since() time.Time where that is known.
	Current(p *v1alpha1.AutoscalingPolicy, now time.Time) error
}
