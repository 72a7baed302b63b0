// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/connections"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/keda"
)

// signals adapts the informers to the external scaler: neither imports the other.
type signals struct {
	read *informer.Signals
	// own is the admin URL of the flags, for triggers without a connection; empty for none.
	own   string
	named *connections.Connections
}

// Read implements keda.Signals.
func (s signals) Read(subject keda.Subject, now time.Time) (backlog.Reading, error) {
	switch {
	case subject.Policy != "":
		key := types.NamespacedName{Namespace: subject.Namespace, Name: subject.Policy}
		return s.read.Read(v1alpha1.GroupResource(), key, backlog.Slim, now)
	case subject.Target.Kind != "":
		if !slices.Contains(cluster.MeasuredKinds(), subject.Target.Kind) {
			return backlog.Reading{}, fmt.Errorf("%w: kind %s is not measured", backlog.ErrUnsupported, subject.Target.Kind)
		}
		key := types.NamespacedName{Namespace: subject.Namespace, Name: subject.Target.Name}
		return s.read.Read(cluster.ResourceFor(subject.Target.Kind), key, backlog.Slim, now)
	}
	pulsar, workerURL, err := s.cluster(subject)
	if err != nil {
		return backlog.Reading{}, err
	}
	if component := subject.Component; component.Name != "" {
		component.Cluster, component.WorkerURL = pulsar, workerURL
		return s.read.ReadComponent(subject.Namespace, component, now)
	}
	subscription := backlog.NewSubscription(pulsar, subject.Subscription, strings.Split(subject.Topics, ",")...)
	return s.read.ReadSubscription(subject.Namespace, subscription, now)
}

// cluster returns the cluster of a subject and its function worker if that runs separately, or why there is none.
func (s signals) cluster(subject keda.Subject) (cluster backlog.Cluster, workerURL string, err error) {
	switch {
	case subject.Connection != "":
		return s.named.Resolve(subject.Connection, subject.Namespace)
	case s.own == "":
		return backlog.Cluster{}, "", backlog.Errorf(backlog.ErrUnsupported,
			"the trigger has no connection, and the scaler has no Pulsar of its own: set connection, or --pulsar-admin-url of "+
				"the scaler (value pulsar.adminURL of the chart)")
	}
	address, err := backlog.ParseAdminURL(s.own)
	return backlog.Cluster{AdminURL: address}, "", err
}
