// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

const (
	// retryStale is the pause before a retry with an outdated cache.
	retryStale = 10 * time.Millisecond
	// retryPaused is the pause before a retry while the operator is paused.
	retryPaused = 50 * time.Millisecond
)

// Config configures an Operator. REST and Runner are required.
type Config struct {
	// REST is the configuration of an administrator. The cluster must serve the kinds of CRDs.
	REST *rest.Config
	// Runner starts the replicas.
	Runner replica.Runner
	// RestartBackoff is the pause before the restart of a replica that ended by itself. It doubles up to 30 s until the
	// replica is ready; 0 is 1 s (a kubelet's is 10 s).
	RestartBackoff time.Duration
	// StopTimeout is the grace period before a replica is killed; 0 is 30 s, Kubernetes' default.
	StopTimeout time.Duration
}

// Operator replaces Function Mesh and the nodes of the cluster. Its methods may be called from any goroutine.
type Operator struct {
	pods   *pods.Runner
	meshes *meshReconciler
	// paused stops Function Mesh's controllers.
	paused atomic.Bool
}

// NewOperator returns an operator; Run runs it.
func NewOperator(config Config) (*Operator, error) {
	replicas := &instances{runner: config.Runner}
	runner, err := pods.New(pods.Config{
		REST: config.REST, Find: replicas.find, Backoff: config.RestartBackoff,
		Grace:   cmp.Or(config.StopTimeout, time.Duration(graceSeconds)*time.Second),
		Options: func(o *ctrl.Options) { o.Client.Cache = &client.CacheOptions{Unstructured: true} },
	})
	if err != nil {
		return nil, err
	}
	manager := runner.Manager
	replicas.client, replicas.direct = manager.GetClient(), manager.GetAPIReader()
	o := &Operator{pods: runner}
	for _, kind := range componentKinds() {
		r := &reconciler{
			kind: kind, client: manager.GetClient(), paused: &o.paused, changed: func(client.ObjectKey, *int32) {},
		}
		if consumes(kind) {
			r.changed = o.desired
		}
		if err := r.register(manager); err != nil {
			return nil, err
		}
	}
	o.meshes = &meshReconciler{client: manager.GetClient(), paused: &o.paused, passes: map[client.ObjectKey]int{}}
	if err := o.meshes.register(manager); err != nil {
		return nil, err
	}
	if err := (deployments{client: manager.GetClient(), pods: o.pods}).register(manager); err != nil {
		return nil, err
	}
	return o, nil
}

// Run runs until ctx ends, stops all replicas gracefully and returns; the objects stay. Call it once.
func (o *Operator) Run(ctx context.Context) error { return o.pods.Run(ctx) }

// Pause stops Function Mesh's controllers, as if its operator were stopped: changes of its objects have no effect. A
// reconcile in progress ends. The controllers of pods run on: they stand for kube-controller-manager and a kubelet.
func (o *Operator) Pause() { o.paused.Store(true) }

// Resume starts Function Mesh's controllers again, which handle missed changes.
func (o *Operator) Resume() { o.paused.Store(false) }

func (o *Operator) desired(function client.ObjectKey, replicas *int32) {
	if replicas == nil {
		o.pods.Desire(function, 0)
		o.pods.StopOf(function)
		return
	}
	o.pods.Desire(function, int(*replicas))
}

// consumes reports whether the Operator runs replicas of the kind. A Function and a Sink with the same name share a
// history: give them different names.
func consumes(kind string) bool { return kind == KindFunction || kind == KindSink }

// Running counts the replicas of the Function that consume.
func (o *Operator) Running(namespace, name string) int {
	return o.pods.Last(client.ObjectKey{Namespace: namespace, Name: name}).Ready
}

// Started counts the replicas of the Function that have not ended, which may consume still.
func (o *Operator) Started(namespace, name string) int {
	return o.pods.Last(client.ObjectKey{Namespace: namespace, Name: name}).Started
}

// Timeline is the history of the Function, one Sample per change.
func (o *Operator) Timeline(namespace, name string) []pods.Sample {
	return o.pods.Timeline(client.ObjectKey{Namespace: namespace, Name: name})
}

// Desired are the values of spec.replicas of the Function from a time on, each change once: first the one at that time.
func (o *Operator) Desired(namespace, name string, since time.Time) (desired []int) {
	for _, sample := range o.Timeline(namespace, name) {
		if !sample.Time.After(since) {
			desired = desired[:0]
		}
		desired = append(desired, sample.Desired)
	}
	return slices.Compact(desired)
}
