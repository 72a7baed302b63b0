// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

const (
	// annotationConsumer of a pod has the consumer that it runs, as JSON: a user's program.
	annotationConsumer = "test.pulsar-autoscaler.io/consumer"
	// labelDeployment of a pod has the name of its Deployment.
	labelDeployment = "app"
)

// Deployment returns a Deployment with pods that run the instance as plain consumers, without Function Mesh.
func Deployment(namespace, name string, replicas int32, in replica.Instance) (*appsv1.Deployment, error) {
	in.Plain = true
	text, err := json.Marshal(in) //nolint:musttag // both ends are here
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
	pods   *pods.Runner
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
		d.pods.Desire(request.NamespacedName, 0)
	case deployment.Spec.Template.Annotations[annotationConsumer] != "":
		d.pods.Desire(request.NamespacedName, int(*deployment.Spec.Replicas))
	}
	return ctrl.Result{}, nil
}

// consumer returns the replica of a Deployment's pod.
func (i *instances) consumer(pod *corev1.Pod) (*pods.Workload, error) {
	var in replica.Instance
	if err := json.Unmarshal([]byte(pod.Annotations[annotationConsumer]), &in); err != nil { //nolint:musttag // as above
		return nil, fmt.Errorf("decoding annotation %s of pod %s: %w", annotationConsumer, pod.Name, err)
	}
	return i.workload(client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[labelDeployment]}, in), nil
}
