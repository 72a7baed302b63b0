// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

const (
	// retryStale is the pause before a retry with an outdated cache.
	retryStale = 10 * time.Millisecond
	// podIP is the address of all replicas, and annotationPort where each serves its metrics.
	podIP          = "127.0.0.1"
	annotationPort = "prometheus.io/port"
	// retryConfig is the pause before another attempt to start a misconfigured replica.
	retryConfig = time.Second
)

// kubelet stands for the nodes: it keeps a replica for each pod of a Function, a Sink or a consuming Deployment, and
// writes the pod's status.
type kubelet struct {
	client client.Client
	// direct reads ConfigMaps without a watch.
	direct client.Reader
	fleet  *fleet
}

func (k *kubelet) register(manager ctrl.Manager, changed <-chan event.GenericEvent) error {
	err := ctrl.NewControllerManagedBy(manager).
		Named("mesh-pod").
		For(&corev1.Pod{}).
		WatchesRawSource(source.Channel(changed, &handler.EnqueueRequestForObject{})).
		Complete(k)
	if err != nil {
		return fmt.Errorf("registering the controller of pods: %w", err)
	}
	return nil
}

// Reconcile makes replicas follow pods. A pod without a node disappears at its deletion. Its replica still ends
// gracefully, and the next replica of the name waits for it.
func (k *kubelet) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod, err := read(ctx, k.client, request.Namespace, request.Name, &corev1.Pod{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if pod == nil || pod.DeletionTimestamp != nil {
		k.fleet.stop(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if pod.Annotations[annotationConsumer] != "" {
		return ctrl.Result{}, k.consume(ctx, request, pod)
	}
	if !slices.Contains(consumingComponents(), pod.Labels[labelComponent]) {
		return ctrl.Result{}, nil // not a pod that runs here
	}
	return k.instance(ctx, request, pod)
}

// instance starts or stops the replica of a Function's or Sink's pod.
func (k *kubelet) instance(ctx context.Context, request ctrl.Request, pod *corev1.Pod) (ctrl.Result, error) {
	ordinal, err := strconv.Atoi(pod.Labels[appsv1.PodIndexLabel])
	if err != nil {
		return ctrl.Result{}, nil // a pod without a StatefulSet runs no replica
	}
	if found, started := k.fleet.look(request.NamespacedName, pod.UID); started {
		return ctrl.Result{}, k.report(ctx, pod, found)
	}
	kind := KindFunction
	if pod.Labels[labelComponent] == (component{kind: KindSink}).suffix() {
		kind = KindSink
	}
	function, err := read(ctx, k.client, pod.Namespace, pod.Labels[labelName], object(kind))
	if err != nil || function == nil {
		return ctrl.Result{}, err // the garbage collector deletes the pod of a deleted Function
	}
	now, err := readStatus(function)
	if err != nil {
		return ctrl.Result{}, err
	}
	c, err := decode(function)
	if err != nil {
		return ctrl.Result{}, err
	}
	// A real pod takes seconds to start; by then the operator has counted it or has reset the StatefulSet.
	if c.managed && !c.paused && int(now.Replicas) <= ordinal {
		return ctrl.Result{RequeueAfter: retryStale}, nil
	}
	in, err := k.configure(ctx, c, ordinal)
	if err != nil {
		return ctrl.Result{RequeueAfter: retryConfig}, k.tell(ctx, pod, misconfigured(err))
	}
	k.fleet.start(ctx, request.NamespacedName, client.ObjectKeyFromObject(function), pod.UID, in)
	return ctrl.Result{}, nil
}

// configure completes an instance with the broker's address from the component's ConfigMap.
func (k *kubelet) configure(ctx context.Context, c component, ordinal int) (replica.Instance, error) {
	in, err := c.instance(ordinal)
	if err != nil {
		return replica.Instance{}, err
	}
	name := c.spec.Pulsar.PulsarConfig
	config := &corev1.ConfigMap{}
	if err := k.direct.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, config); err != nil {
		return replica.Instance{}, fmt.Errorf("reading the ConfigMap of spec.pulsar.pulsarConfig: %w", err)
	}
	if in.ServiceURL = config.Data[keyServiceURL]; in.ServiceURL == "" {
		return replica.Instance{}, fmt.Errorf("ConfigMap %s/%s has no %s: set it to the broker, e.g. pulsar://127.0.0.1:6650",
			c.namespace, name, keyServiceURL)
	}
	return in, nil
}

// report writes the status of a pod with a replica.
func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, found state) error {
	pod, err := k.announce(ctx, pod, found)
	if err != nil || pod == nil {
		return err
	}
	return k.tell(ctx, pod, containerState(found))
}

// announce annotates the pod with the port of its metrics: in Function Mesh's template all pods have the same port, and
// replicas here share one address. It returns the updated pod, nil after its deletion.
func (k *kubelet) announce(ctx context.Context, pod *corev1.Pod, found state) (*corev1.Pod, error) {
	port := portOf(found.metrics)
	if port == "" || pod.Annotations[annotationPort] == port {
		return pod, nil
	}
	next := pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, annotationPort, port)
	err := k.client.Patch(ctx, next, client.MergeFrom(pod))
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // gone is no error
	}
	if err != nil {
		return nil, fmt.Errorf("announcing the metrics of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return next, nil
}

// portOf returns the port of a URL; empty without one.
func portOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Port()
}

// tell writes the pod's status if it differs. It ignores a deleted pod.
func (k *kubelet) tell(ctx context.Context, pod *corev1.Pod, container corev1.ContainerStatus) error {
	next := pod.DeepCopy()
	next.Status = podStatus(pod, container)
	if equality.Semantic.DeepEqual(pod.Status, next.Status) {
		return nil
	}
	err := k.client.Status().Patch(ctx, next, client.MergeFrom(pod))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// containerState is the status that a kubelet would write for the replica's container. It is Ready when the replica
// consumes: Function Mesh's pods have no readiness probe and are Ready a little earlier.
func containerState(s state) corev1.ContainerStatus {
	container := corev1.ContainerStatus{RestartCount: s.restarts, Ready: s.ready}
	switch {
	case s.ready:
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(s.since.Truncate(time.Second))}
	case s.restarts > 0:
		container.State.Waiting = &corev1.ContainerStateWaiting{
			Reason:  "CrashLoopBackOff",
			Message: "the replica ended by itself",
		}
	default:
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	return container
}

func misconfigured(err error) corev1.ContainerStatus {
	waiting := &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: err.Error()}
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: waiting}}
}

// podStatus is the pod's status with the status of its container.
func podStatus(pod *corev1.Pod, container corev1.ContainerStatus) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	started := container.Ready
	container.Name, container.Image = pod.Spec.Containers[0].Name, pod.Spec.Containers[0].Image
	container.Started = &started
	status.ContainerStatuses = []corev1.ContainerStatus{container}
	ready := corev1.ConditionFalse
	if container.Ready {
		ready, status.Phase = corev1.ConditionTrue, corev1.PodRunning
		// Replicas are processes of this machine.
		status.PodIP, status.PodIPs = podIP, []corev1.PodIP{{IP: podIP}}
	}
	since := metav1.NewTime(time.Time{})
	if running := container.State.Running; running != nil {
		since = running.StartedAt
		if status.StartTime == nil {
			status.StartTime = &running.StartedAt
		}
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setCondition(&status, kind, ready, since)
	}
	return status
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus,
	since metav1.Time,
) {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == kind {
			if c.Status != value {
				c.Status, c.LastTransitionTime = value, since
			}
			return
		}
	}
	status.Conditions = append(status.Conditions,
		corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: since})
}
