// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	labelComponent = Group + "/component"
	labelName      = Group + "/name"

	keyAdminURL   = "webServiceURL"
	keyServiceURL = "brokerServiceURL"

	grpcPort, metricsPort = 9093, 9094
	// defaultCPUPercent is the target of Function Mesh's HPA if the CR has none.
	defaultCPUPercent = 80
	graceSeconds      = int64(30)
)

// suffix of the objects' names: function, sink or source.
func (c component) suffix() string { return strings.ToLower(c.kind) }

// child is the name of the StatefulSet and of the HPA.
func (c component) child() string { return c.name + "-" + c.suffix() }

// labels are on all objects, and the selector has all of them: 10 for a Function, 8 for a Sink or a Source
// (controllers/spec/function.go, sink.go, source.go).
func (c component) labels() map[string]string {
	labels := map[string]string{
		"app.kubernetes.io/name": c.child(), "app.kubernetes.io/instance": c.child(),
		labelComponent: c.suffix(), labelName: c.name, Group + "/namespace": c.namespace,
		"component": c.suffix(), "name": c.name, "namespace": c.namespace,
	}
	if c.kind == KindFunction {
		labels["app"], labels[Group+"/app"] = "function-mesh", "function-mesh"
	}
	return labels
}

// meta is the metadata of an object that the CR owns.
func (c component) meta(name string, owner metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: c.namespace, Name: name, Labels: c.labels(), OwnerReferences: []metav1.OwnerReference{owner},
	}
}

// StatefulSet is the one that the Operator creates for a Function, Sink or Source.
func StatefulSet(of *unstructured.Unstructured) (*appsv1.StatefulSet, error) {
	c, err := decode(of)
	if err != nil {
		return nil, err
	}
	return c.statefulSet(*metav1.NewControllerRef(of, GroupVersion().WithKind(c.kind)))
}

// statefulSet is the StatefulSet of the CR. Its one container never runs.
func (c component) statefulSet(owner metav1.OwnerReference) (*appsv1.StatefulSet, error) {
	container, err := c.container()
	if err != nil {
		return nil, err
	}
	replicas, grace := *c.spec.Replicas, graceSeconds
	return &appsv1.StatefulSet{
		ObjectMeta: c.meta(c.child(), owner),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: c.child() + "-headless", PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:       &metav1.LabelSelector{MatchLabels: c.labels()},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: c.labels(), Annotations: map[string]string{
					"prometheus.io/scrape": "true", "prometheus.io/port": fmt.Sprint(metricsPort),
				}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{container}, TerminationGracePeriodSeconds: &grace},
			},
		},
	}, nil
}

// container has those fields in its command that restart pods when they change: inputs, ordering and resources.
func (c component) container() (corev1.Container, error) {
	details, err := json.Marshal(map[string]any{
		"tenant": c.spec.Tenant, "namespace": c.spec.Namespace, "name": c.spec.Name, "className": c.spec.ClassName,
		"userConfig": c.spec.FuncConfig, "parallelism": 1, "input": c.spec.Input,
		"subscriptionName": c.spec.SubscriptionName, "subscriptionType": strings.ToUpper(c.subscriptionType()),
		"timeoutMs": c.spec.TimeoutMillis,
	})
	if err != nil {
		return corev1.Container{}, fmt.Errorf("writing the details of %s %s/%s: %w", c.kind, c.namespace, c.name, err)
	}
	reference := corev1.LocalObjectReference{Name: c.spec.Pulsar.PulsarConfig}
	config := corev1.ConfigMapEnvSource{LocalObjectReference: reference}
	return corev1.Container{
		Name:    "pulsar-" + c.suffix(),
		Image:   cmp.Or(c.spec.Image, "streamnative/pulsar-functions-java-runner:3.3.9"),
		Command: []string{"sh", "-c"},
		Args: []string{"SHARD_ID=${POD_NAME##*-} && exec java org.apache.pulsar.functions.instance.JavaInstanceMain " +
			"--instance_id ${SHARD_ID} --function_details '" + string(details) + "' --pulsar_serviceurl $brokerServiceURL"},
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
		}}},
		EnvFrom:   []corev1.EnvFromSource{{ConfigMapRef: &config}},
		Resources: c.spec.Resources,
		Ports: []corev1.ContainerPort{
			{Name: "tcp-grpc", ContainerPort: grpcPort}, {Name: "http-metrics", ContainerPort: metricsPort},
		},
	}, nil
}

// hpa is Function Mesh's HPA; spec.maxReplicas must be set. It has the default metric only.
func (c component) hpa(owner metav1.OwnerReference) *autoscalingv2.HorizontalPodAutoscaler {
	minimum, percent := *c.spec.MinReplicas, int32(defaultCPUPercent)
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: c.meta(c.child(), owner),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: GroupVersion().String(), Kind: c.kind, Name: c.name,
			},
			MinReplicas: &minimum, MaxReplicas: *c.spec.MaxReplicas,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name:   corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
				},
			}},
		},
	}
}

// rewrite copies want into live, as Function Mesh does at a change: the whole template, but no immutable fields.
func rewrite(live, want *appsv1.StatefulSet) {
	keep := live.Spec
	live.Spec = *want.Spec.DeepCopy()
	live.Spec.Selector, live.Spec.ServiceName = keep.Selector, keep.ServiceName
	live.Spec.PodManagementPolicy, live.Spec.VolumeClaimTemplates = keep.PodManagementPolicy, keep.VolumeClaimTemplates
	live.Labels = maps.Clone(want.Labels)
	live.OwnerReferences = want.OwnerReferences
}
