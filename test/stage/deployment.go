// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

const kindDeployment = "Deployment"

// deployment returns a Deployment of plain consumers that does not exist yet.
func (s *Stage) deployment(f *Function, config FunctionConfig) (*unstructured.Unstructured, error) {
	deployment, err := mesh.Deployment(Namespace, config.Name, cmp.Or(config.Replicas, 1), replica.Instance{
		Tenant: "public", Namespace: "default", Name: config.Name, Topics: []string{f.Topic},
		Subscription: f.subscription(), ServiceURL: s.Broker.ServiceURL(), ServiceTime: config.ServiceTime,
		StartDelay: config.StartDelay, ReceiverQueueSize: int(config.ReceiverQueueSize),
	})
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	if err != nil {
		return nil, fmt.Errorf("encoding Deployment %s: %w", config.Name, err)
	}
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kindDeployment))
	if config.Edit != nil {
		config.Edit(object)
	}
	return object, nil
}

// subscription is the subscription of a Deployment's consumers.
func (f *Function) subscription() string { return f.Name + "-consumers" }

// Consumes makes the policy scale a Deployment, with its subscription.
func (f *Function) Consumes(p *v1alpha1.AutoscalingPolicy) *v1alpha1.AutoscalingPolicy {
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: kindDeployment, Name: f.Name}
	p.Spec.Subscription = &v1alpha1.Subscription{
		Topics: []v1alpha1.TopicName{v1alpha1.TopicName(f.Topic)}, Name: f.subscription(),
	}
	p.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: f.stage.Broker.AdminURL()}
	return p
}
