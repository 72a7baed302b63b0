// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

const (
	// annotationConsumer of a pod has the consumer that it runs, as JSON: a user's program.
	annotationConsumer = "test.pulsar-autoscaler.io/consumer"
	// labelDeployment of a pod has the name of its Deployment.
	labelDeployment = "app"
)

// consumer is the consumer of a Deployment's pod.
type consumer struct {
	Name         string        `json:"name"`
	Topics       []string      `json:"topics"`
	Subscription string        `json:"subscription"`
	ServiceURL   string        `json:"serviceURL"`
	ServiceTime  time.Duration `json:"serviceTime"`
	StartDelay   time.Duration `json:"startDelay"`
	// ReceiverQueueSize is 0 for Pulsar's 1000.
	ReceiverQueueSize int `json:"receiverQueueSize"`
}

// Deployment returns a Deployment with pods that run the instance as plain consumers, without Function Mesh.
func Deployment(namespace, name string, replicas int32, in replica.Instance) (*appsv1.Deployment, error) {
	text, err := json.Marshal(consumer{
		Name: in.Name, Topics: in.Topics, Subscription: in.Subscription, ServiceURL: in.ServiceURL,
		ServiceTime: in.ServiceTime, StartDelay: in.StartDelay, ReceiverQueueSize: in.ReceiverQueueSize,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the instance of Deployment %s: %w", name, err)
	}
	labels := map[string]string{labelDeployment: name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labels, Annotations: map[string]string{annotationConsumer: string(text)},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "consumer", Image: "example.com/consumer"}}},
			},
		},
	}, nil
}

// deployments records the history of Deployments. Kubernetes' own controller runs them.
type deployments struct {
	client client.Client
	fleet  *fleet
}

func (d deployments) register(manager ctrl.Manager) error {
	if err := ctrl.NewControllerManagedBy(manager).Named("consumer-deployment").For(&appsv1.Deployment{}).
		Complete(d); err != nil {
		return fmt.Errorf("registering the controller of Deployments: %w", err)
	}
	return nil
}

// Reconcile records the desired replicas of a Deployment.
func (d deployments) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	deployment, err := read(ctx, d.client, request.Namespace, request.Name, &appsv1.Deployment{})
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case deployment == nil || deployment.DeletionTimestamp != nil:
		d.fleet.desire(request.NamespacedName, 0)
	case deployment.Spec.Template.Annotations[annotationConsumer] != "":
		d.fleet.desire(request.NamespacedName, int(*deployment.Spec.Replicas))
	}
	return ctrl.Result{}, nil
}

// consume starts or stops the replica of a Deployment's pod.
func (k *kubelet) consume(ctx context.Context, request ctrl.Request, pod *corev1.Pod) error {
	if found, started := k.fleet.look(request.NamespacedName, pod.UID); started {
		return k.tell(ctx, pod, containerState(found))
	}
	var c consumer
	if err := json.Unmarshal([]byte(pod.Annotations[annotationConsumer]), &c); err != nil {
		return fmt.Errorf("decoding annotation %s of pod %s: %w", annotationConsumer, request, err)
	}
	deployment := client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[labelDeployment]}
	k.fleet.start(ctx, request.NamespacedName, deployment, pod.UID, replica.Instance{
		Tenant: "public", Namespace: "default", Name: c.Name, Topics: c.Topics, Subscription: c.Subscription,
		ServiceURL: c.ServiceURL, ServiceTime: c.ServiceTime, StartDelay: c.StartDelay, Plain: true,
		ReceiverQueueSize: c.ReceiverQueueSize,
	})
	return nil
}
