// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func labels(function string) map[string]string { return mesh.FunctionLabels(stage.Namespace, function) }

// child is the name of the StatefulSet of a Function.
func child(function string) string {
	return plan.FunctionMeshName(v1alpha1.ScaleTargetRef{Kind: mesh.KindFunction, Name: function})
}

func statefulSet(function string) *appsv1.StatefulSet {
	count := int32(replicas)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: stage.Namespace, Name: child(function), Labels: labels(function),
			OwnerReferences: owner(mesh.GroupVersion().String(), mesh.KindFunction, function),
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels(function)},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(function)}, Spec: podSpec(function)},
		},
	}
}

// owner is a controller. Its uid is that of nothing: no garbage collector runs.
func owner(version, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: version, Kind: kind, Name: name, UID: "00000000-0000-4000-8000-000000000000", Controller: new(true),
	}}
}

func podSpec(function string) corev1.PodSpec {
	const details = `{"tenant":"public","namespace":"default","className":"pulsarautoscaler.PacedFunction"}`
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
	}
	return corev1.PodSpec{
		NodeName: "node-1", Hostname: child(function), TerminationGracePeriodSeconds: new(int64(30)),
		Containers: []corev1.Container{{
			Name: "pulsar-function", Image: "streamnative/pulsar-functions-java-runner:3.3.9", Command: []string{"sh", "-c"},
			Args: []string{
				"SHARD_ID=${POD_NAME##*-} && exec java -cp /pulsar/instances/java-instance.jar " +
					"org.apache.pulsar.functions.instance.JavaInstanceMain --instance_id ${SHARD_ID} --function_details '" + details +
					"' --pulsar_serviceurl $brokerServiceURL " + strings.Repeat("-Dpulsar.option=value ", 20),
			},
			Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
			}}},
			Resources: corev1.ResourceRequirements{Requests: size, Limits: size},
			Ports: []corev1.ContainerPort{
				{Name: "tcp-grpc", ContainerPort: 9093}, {Name: "http-metrics", ContainerPort: 9094},
			},
		}},
	}
}

// pod is Running and Ready. With a port its counters are served there; otherwise it has no address.
func pod(function string, ordinal, port int) *corev1.Pod {
	name, started := child(function)+"-"+strconv.Itoa(ordinal), metav1.NewTime(time.Now().Truncate(time.Second))
	all := labels(function)
	all[appsv1.StatefulSetPodNameLabel], all[appsv1.PodIndexLabel] = name, strconv.Itoa(ordinal)
	all[appsv1.ControllerRevisionHashLabelKey] = child(function) + "-6bdf7d8c5f"
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started, QOSClass: corev1.PodQOSGuaranteed}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.PodReadyToStartContainers, corev1.ContainersReady, corev1.PodReady,
	} {
		status.Conditions = append(status.Conditions,
			corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: started})
	}
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "pulsar-function", Image: "streamnative/pulsar-functions-java-runner:3.3.9", Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
	}}
	annotations := map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9094"}
	if port != 0 {
		annotations["prometheus.io/port"], status.PodIP = strconv.Itoa(port), "127.0.0.1"
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: stage.Namespace, Name: name, Labels: all, Annotations: annotations,
			OwnerReferences: owner("apps/v1", "StatefulSet", child(function)),
		},
		Spec: podSpec(function), Status: status,
	}
}

// counters are what an instance serves of the series that the adapter requests.
const counters = `# TYPE pulsar_function_received_total counter
pulsar_function_received_total{fqfn="public/default/fn"} %[1]d
pulsar_function_processed_successfully_total{fqfn="public/default/fn"} %[1]d
pulsar_function_user_exceptions_total{fqfn="public/default/fn"} 0
pulsar_function_system_exceptions_total{fqfn="public/default/fn"} 0
pulsar_function_process_latency_ms_count{fqfn="public/default/fn"} %[1]d
pulsar_function_process_latency_ms_sum{fqfn="public/default/fn"} %[2]d
`

// serveInstances serves the counters of all pods until ctx ends, and returns the port: each has processed half of what
// it could since the start.
func serveInstances(ctx context.Context, group *errgroup.Group) (port int, err error) {
	const perSecond, millis = 12, 40
	begun := time.Now()
	address, err := fake.Serve(ctx, group, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		done := int64(time.Since(begun).Seconds() * perSecond)
		_, _ = fmt.Fprintf(w, counters, done, done*millis) // the client may be gone
	}))
	if err != nil {
		return 0, err
	}
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("reading the port: %w", err)
	}
	return strconv.Atoi(text)
}
