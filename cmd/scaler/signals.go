// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/keda"
)

// signals lets KEDA's edge ask the controllers, which must not know each other.
type signals struct {
	read *controllers.Signals
	// cluster is where a connection leads, or why it leads nowhere.
	cluster func(connection string) (backlog.Cluster, error)
}

// Read implements keda.Signals.
func (s signals) Read(subject keda.Subject, now time.Time) (backlog.Reading, error) {
	object := func(resource schema.GroupResource, name string) (backlog.Reading, error) {
		return s.read.Read(resource, types.NamespacedName{Namespace: subject.Namespace, Name: name}, backlog.Slim, now)
	}
	switch {
	case subject.Policy != "":
		return object(v1alpha1.GroupResource(), subject.Policy)
	case subject.Target.Kind != "":
		resource, known := controllers.ResourceOf(subject.Target.Kind)
		if !known {
			return backlog.Reading{}, fmt.Errorf("%w: kind %s is not measured", backlog.ErrUnsupported, subject.Target.Kind)
		}
		return object(resource, subject.Target.Name)
	}
	cluster, err := s.cluster(subject.Connection)
	if err != nil {
		return backlog.Reading{}, err
	}
	if subject.Component != (keda.Component{}) {
		return s.read.ReadComponent(backlog.Component{
			Cluster: cluster, Kind: subject.Component.Kind,
			Tenant: subject.Component.Tenant, Namespace: subject.Component.Namespace, Name: subject.Component.Name,
		}, now)
	}
	return s.read.ReadSubscription(backlog.NewSubscription(cluster, subject.Subscription, strings.Split(subject.Topics, ",")...), now)
}

// scaledObjects likewise.
type scaledObjects struct{ *controllers.ScaledObjects }

// Replicas implements keda.ScaledObjects.
func (s scaledObjects) Replicas(key types.NamespacedName) (keda.Replicas, error) {
	replicas, err := s.ScaledObjects.Replicas(key)
	return keda.Replicas{Least: replicas.Least, Most: replicas.Most, Current: replicas.Current}, err
}
