// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// podIP is the address of all replicas, which are processes of this machine.
const podIP = "127.0.0.1"

// instances are what pods of Functions, Sinks and consuming Deployments run.
type instances struct {
	client client.Client
	// direct reads ConfigMaps without a watch.
	direct client.Reader
	runner replica.Runner
}

// find returns the replica of a pod, nil for a pod of another kind.
func (i *instances) find(ctx context.Context, pod *corev1.Pod) (*pods.Workload, error) {
	if pod.Annotations[annotationConsumer] != "" {
		return i.consumer(pod)
	}
	kinds := componentKinds()
	at := slices.IndexFunc(kinds, func(kind string) bool {
		return consumes(kind) && component{kind: kind}.suffix() == pod.Labels[labelComponent]
	})
	ordinal, err := strconv.Atoi(pod.Labels[appsv1.PodIndexLabel])
	if err != nil || at < 0 {
		return nil, nil //nolint:nilnil // not a pod that runs here, as is one without a StatefulSet
	}
	function, err := read(ctx, i.client, pod.Namespace, pod.Labels[labelName], object(kinds[at]))
	if err != nil || function == nil {
		return nil, err // the garbage collector deletes the pod of a deleted Function
	}
	now, err := readStatus(function)
	if err != nil {
		return nil, err
	}
	c, err := decode(function)
	if err != nil {
		return nil, err
	}
	// A real pod takes seconds to start; by then the operator has counted it or has reset the StatefulSet.
	if c.managed && int(now.Replicas) <= ordinal {
		return nil, pods.ErrNotYet
	}
	in, err := i.configure(ctx, c, ordinal)
	if err != nil {
		return nil, pods.WaitingError{Reason: "CreateContainerConfigError", Err: err}
	}
	return i.workload(client.ObjectKeyFromObject(function), in), nil
}

// workload runs a replica of an object. Its pod is ready when the replica consumes: Function Mesh's pods have no
// readiness probe and are ready a little earlier.
func (i *instances) workload(of client.ObjectKey, in replica.Instance) *pods.Workload {
	start := func(ctx context.Context, _ int32) (pods.Container, error) { return i.runner.Start(ctx, in) }
	return &pods.Workload{Of: of, Address: podIP, Delay: in.StartDelay, Start: start}
}

// configure completes an instance with the broker's address from the component's ConfigMap.
func (i *instances) configure(ctx context.Context, c component, ordinal int) (replica.Instance, error) {
	in, err := c.instance(ordinal)
	if err != nil {
		return replica.Instance{}, err
	}
	name := c.spec.Pulsar.PulsarConfig
	config := &corev1.ConfigMap{}
	if err := i.direct.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, config); err != nil {
		return replica.Instance{}, fmt.Errorf("reading the ConfigMap of spec.pulsar.pulsarConfig: %w", err)
	}
	if in.ServiceURL = config.Data[keyServiceURL]; in.ServiceURL == "" {
		return replica.Instance{}, fmt.Errorf("ConfigMap %s/%s has no %s: set it to the broker, e.g. pulsar://127.0.0.1:6650",
			c.namespace, name, keyServiceURL)
	}
	return in, nil
}
