// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// uid is that of nothing: no garbage collector runs.
const uid = "00000000-0000-4000-8000-000000000000"

// statefulSet is that of a Function, with a command as long as a real one.
func statefulSet(function string) (*appsv1.StatefulSet, error) {
	object := mesh.Function(stage.Namespace, function, mesh.FunctionConfig{
		Topics: []string{fake.TopicOf(function)}, PulsarConfig: "pulsar-0", Replicas: replicas,
	})
	object.SetUID(uid)
	set, err := mesh.StatefulSet(object)
	if err != nil {
		return nil, err
	}
	set.UID = uid
	set.Spec.Template.Spec.Containers[0].Args[0] += strings.Repeat(" -Dpulsar.option=value", 20)
	return set, nil
}

// pod is Running and Ready. With a port its counters are served there; otherwise it has no address.
func pod(set *appsv1.StatefulSet, ordinal, port int) *corev1.Pod {
	name, started := set.Name+"-"+strconv.Itoa(ordinal), metav1.NewTime(time.Now().Truncate(time.Second))
	template := set.Spec.Template.DeepCopy()
	made := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	made.Namespace, made.Name, made.Spec.NodeName, made.Spec.Hostname = set.Namespace, name, "node-1", set.Name
	made.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
	}
	made.Labels[appsv1.StatefulSetPodNameLabel], made.Labels[appsv1.PodIndexLabel] = name, strconv.Itoa(ordinal)
	made.Labels[appsv1.ControllerRevisionHashLabelKey] = set.Name + "-6bdf7d8c5f"
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started, QOSClass: corev1.PodQOSGuaranteed}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.PodReadyToStartContainers, corev1.ContainersReady, corev1.PodReady,
	} {
		status.Conditions = append(status.Conditions,
			corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: started})
	}
	container := made.Spec.Containers[0]
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container.Name, Image: container.Image, Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
	}}
	if port != 0 {
		made.Annotations["prometheus.io/port"], status.PodIP = strconv.Itoa(port), "127.0.0.1"
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
	made.Status = status
	return made
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
func serveInstances(ctx context.Context) (port int, err error) {
	const perSecond, millis = 12, 40
	begun := time.Now()
	served, err := url.Parse(fake.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		done := int64(time.Since(begun).Seconds() * perSecond)
		_, _ = fmt.Fprintf(w, counters, done, done*millis) // the client may be gone
	})))
	if err != nil {
		return 0, fmt.Errorf("reading the port: %w", err)
	}
	return strconv.Atoi(served.Port())
}
