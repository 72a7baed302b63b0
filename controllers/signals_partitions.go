// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// Partitions returns what is known of each partition of what Read sums up for the object. It fails as Read does.
func (s *Signals) Partitions(resource schema.GroupResource, key types.NamespacedName,
	now time.Time,
) ([]backlog.PartitionReading, error) {
	return s.partitions(asked{resource: resource, key: key}, now)
}

// PartitionsOfComponent likewise, of what ReadComponent does.
func (s *Signals) PartitionsOfComponent(component function.Component, now time.Time) ([]backlog.PartitionReading,
	error,
) {
	a := asked{component: component}
	if err := s.bounded(a, 0); err != nil {
		return nil, err
	}
	return s.partitions(a, now)
}

// PartitionsOfSubscription likewise, of what ReadSubscription does, which begins to track it.
func (s *Signals) PartitionsOfSubscription(subscription backlog.Subscription,
	now time.Time,
) ([]backlog.PartitionReading, error) {
	return s.config.Store.Partitions(subscription, now)
}

func (s *Signals) partitions(a asked, now time.Time) ([]backlog.PartitionReading, error) {
	subscription, err := s.subscription(a, backlog.Slim, now)
	if err != nil {
		return nil, err
	}
	return s.config.Store.Partitions(subscription, now)
}
