// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"

	"context"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// fakeWorker runs one function.
type fakeWorker struct {
	parallelism int
	stopped     bool
	// Each fails with its own.
	describeFails, statusFails, writeFails error
	// described, looked and wrote say how often, and with what.
	described, looked int
	wrote             []int32
	components        map[function.Component]bool
	neverAcknowledges bool
}

func (f *fakeWorker) Describe(_ context.Context, c function.Component) (function.Description, error) {
	f.described++
	f.components[c] = true
	subscription := backlog.NewSubscription(c.Cluster, c.FullName(), testTopic)
	subscription.Workload = c.Workload()
	return function.Description{
		Subscription: subscription, Type: backlog.Shared, Parallelism: f.parallelism,
		NeverAcknowledges: f.neverAcknowledges,
	}, f.describeFails
}

func (f *fakeWorker) Status(context.Context, function.Component) (function.Status, error) {
	f.looked++
	if f.stopped {
		return function.Status{Instances: f.parallelism}, f.statusFails
	}
	return function.Status{Instances: f.parallelism, Running: f.parallelism}, f.statusFails
}

func (f *fakeWorker) SetParallelism(_ context.Context, _ function.Component, instances int32) error {
	f.wrote = append(f.wrote, instances)
	if f.writeFails == nil {
		f.parallelism = int(instances)
	}
	return f.writeFails
}

// workerPolicy scales function public/default/resize from 1 to 20 instances.
func workerPolicy() *v1alpha1.AutoscalingPolicy {
	p := testPolicy()
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{}
	p.Spec.PulsarFunctionRef = v1alpha1.PulsarFunctionRef{Kind: v1alpha1.WorkloadFunction, Name: "resize"}
	p.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: testCluster().AdminURL}
	return p
}

// newTestWorker runs three instances.
func newTestWorker() *fakeWorker {
	return &fakeWorker{parallelism: 3, components: map[function.Component]bool{}}
}
