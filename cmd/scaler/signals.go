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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/connections"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/keda"
)

// signals lets KEDA's edge ask the controllers, which must not know each other.
type signals struct {
	read   *controllers.Signals
	places places
}

// Read implements keda.Signals.
func (s signals) Read(subject keda.Subject, now time.Time) (backlog.Reading, error) {
	return ask(subject, s.places, source[backlog.Reading]{
		object: func(resource schema.GroupResource, key types.NamespacedName) (backlog.Reading, error) {
			return s.read.Read(resource, key, backlog.Slim, now)
		},
		component:    func(c function.Component) (backlog.Reading, error) { return s.read.ReadComponent(c, now) },
		subscription: func(of backlog.Subscription) (backlog.Reading, error) { return s.read.ReadSubscription(of, now) },
	})
}

// Partitions implements keda.Signals.
func (s signals) Partitions(subject keda.Subject, now time.Time) ([]backlog.PartitionReading, error) {
	return ask(subject, s.places, source[[]backlog.PartitionReading]{
		object: func(resource schema.GroupResource, key types.NamespacedName) ([]backlog.PartitionReading, error) {
			return s.read.Partitions(resource, key, now)
		},
		component: func(c function.Component) ([]backlog.PartitionReading, error) {
			return s.read.PartitionsOfComponent(c, now)
		},
		subscription: func(of backlog.Subscription) ([]backlog.PartitionReading, error) {
			return s.read.PartitionsOfSubscription(of, now)
		},
	})
}

// source is what the controllers say of an object, what a function worker runs, and a subscription.
type source[T any] struct {
	object       func(resource schema.GroupResource, key types.NamespacedName) (T, error)
	component    func(component function.Component) (T, error)
	subscription func(subscription backlog.Subscription) (T, error)
}

// ask the source about a subject.
func ask[T any](subject keda.Subject, places places, from source[T]) (T, error) {
	var none T
	switch {
	case subject.Policy != "":
		return from.object(v1alpha1.GroupResource(), types.NamespacedName{Namespace: subject.Namespace, Name: subject.Policy})
	case subject.Target.Kind != "":
		resource, known := controllers.ResourceOf(subject.Target.Kind)
		if !known {
			return none, fmt.Errorf("%w: kind %s is not measured", backlog.ErrUnsupported, subject.Target.Kind)
		}
		return from.object(resource, types.NamespacedName{Namespace: subject.Namespace, Name: subject.Target.Name})
	}
	cluster, workerURL, err := places.of(subject)
	if err != nil {
		return none, err
	}
	if subject.Component != (keda.Component{}) {
		return from.component(function.Component{
			Cluster: cluster, WorkerURL: workerURL, Kind: subject.Component.Kind,
			Tenant: subject.Component.Tenant, Namespace: subject.Component.Namespace, Name: subject.Component.Name,
		})
	}
	return from.subscription(backlog.NewSubscription(cluster, subject.Subscription, strings.Split(subject.Topics, ",")...))
}

// places are where Pulsar is for triggers that have no object to say it.
type places struct {
	// own is the admin URL of the flags; empty for none.
	own   string
	named *connections.Connections
}

// of returns the cluster of a subject and its function worker where that runs apart, or why there is none.
func (p places) of(subject keda.Subject) (cluster backlog.Cluster, workerURL string, err error) {
	switch {
	case subject.Connection != "":
		return p.named.Resolve(subject.Connection, subject.Namespace)
	case p.own == "":
		return backlog.Cluster{}, "", backlog.Because(backlog.ErrUnsupported,
			"the trigger has no connection, and the scaler has no Pulsar of its own: set connection, or --pulsar-admin-url of "+
				"the scaler")
	}
	address, err := backlog.ParseAdminURL(p.own)
	return backlog.Cluster{AdminURL: address}, "", err
}

// scaledObjects likewise.
type scaledObjects struct{ *controllers.ScaledObjects }

// Replicas implements keda.ScaledObjects.
func (s scaledObjects) Replicas(key types.NamespacedName) (keda.Replicas, error) {
	replicas, err := s.ScaledObjects.Replicas(key)
	return keda.Replicas{Least: replicas.Least, Most: replicas.Most, Current: replicas.Current}, err
}
