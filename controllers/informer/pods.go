// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// labelComponent has the kind in lower case, and labelName the name of the object, on all objects that Function Mesh
	// creates for it.
	labelComponent = cluster.FunctionMeshGroup + "/component"
	labelName      = cluster.FunctionMeshGroup + "/name"
	// defaultInstancePort is what Function Mesh writes into cluster.AnnotationPort.
	defaultInstancePort = 9094
	// indexInstance is the index of pods by the workload that they are instances of.
	indexInstance = "instance"
	// podProbeTimeout bounds one check whether the adapter may list pods.
	podProbeTimeout = 5 * time.Second
	// podProbeInterval is the time between two such checks.
	podProbeInterval = time.Minute
)

// Pods has the pods of workloads: the addresses of their metrics, and their health. It is safe for concurrent use.
type Pods struct {
	// direct lists selected pods.
	direct client.Reader
	// watched are the pods of each watched namespace, or of metav1.NamespaceAll.
	watched map[string]*watchedPods
	// selections are the health of selected pods that are not in the cache.
	selections *target.Lookups[podSelection, selectedPods]
}

type podWatch struct {
	pods   toolscache.Indexer
	run    func(context.Context)
	synced toolscache.InformerSynced
}

// NewPods creates watches of pods with the connection of a manager, in some namespaces or, without any, in all. They
// have pods while Start runs.
func NewPods(mgr manager.Manager, namespaces []string) (*Pods, error) {
	p := &Pods{
		direct: mgr.GetAPIReader(), watched: map[string]*watchedPods{}, selections: newSelections(time.Now),
	}
	connection, err := apiutil.RESTClientForGVK(corev1.SchemeGroupVersion.WithKind("Pod"), false, false, mgr.GetConfig(),
		serializer.NewCodecFactory(mgr.GetScheme()), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("connecting to watch pods: %w", err)
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		watched := newWatchedPods(p.direct, namespace)
		for _, selector := range []func() (labels.Selector, error){instanceSelector, workerSelector} {
			one, err := selector()
			if err != nil {
				return nil, err
			}
			watch, err := watched.watch(connection, one)
			if err != nil {
				return nil, err
			}
			watched.watches = append(watched.watches, watch)
		}
		p.watched[namespace] = watched
	}
	return p, nil
}

// watch creates the watch of one selector.
func (p *watchedPods) watch(connection toolscache.Getter, selector labels.Selector) (podWatch, error) {
	informer := toolscache.NewSharedIndexInformer(
		toolscache.NewFilteredListWatchFromClient(connection, "pods", p.namespace,
			func(options *metav1.ListOptions) { options.LabelSelector = selector.String() }),
		&corev1.Pod{}, 0, toolscache.Indexers{indexInstance: indexPod})
	err := errors.Join(informer.SetTransform(podTransform()), informer.SetWatchErrorHandlerWithContext(p.watchFailed))
	if err != nil {
		return podWatch{}, fmt.Errorf("preparing to watch pods: %w", err)
	}
	return podWatch{pods: informer.GetIndexer(), run: informer.RunWithContext, synced: informer.HasSynced}, nil
}

var (
	errPodsNotRead   = fmt.Errorf("%w: pods are being read", backlog.ErrNoData)
	errPodsForbidden = fmt.Errorf("%w: the adapter may not list pods: grant it list and watch on pods (value "+
		"rbac.pods of the chart), or set --instance-metrics=Off", backlog.ErrForbidden)
)

// instanceSelector selects the pods that Function Mesh runs for workloads.
func instanceSelector() (labels.Selector, error) {
	var components []string
	for _, kind := range cluster.WorkloadKinds() {
		components = append(components, strings.ToLower(kind))
	}
	isComponent, err := labels.NewRequirement(labelComponent, selection.In, components)
	if err != nil {
		return nil, fmt.Errorf("selecting pods: %w", err)
	}
	return labels.NewSelector().Add(*isComponent), nil
}

// workloadOf is the workload that a pod is an instance of, empty for none. A pod is an instance when the workload's
// StatefulSet controls it: the Job that cleans up after a workload gives its pod the same labels.
func workloadOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != cluster.KindStatefulSet {
		return ""
	}
	if isOfWorker(pod.Labels) {
		return backlog.Object{Kind: cluster.KindStatefulSet, Namespace: pod.Namespace, Name: owner.Name}.String()
	}
	for _, kind := range cluster.WorkloadKinds() {
		name := pod.Labels[labelName]
		if pod.Labels[labelComponent] == strings.ToLower(kind) && name != "" &&
			owner.Name == plan.FunctionMeshName(v1alpha1.ScaleTargetRef{Kind: kind, Name: name}) {
			return backlog.Object{Kind: kind, Namespace: pod.Namespace, Name: name}.String()
		}
	}
	return ""
}

// Addresses returns where the running instances of the workload serve their metrics, sorted. Without an error, an empty
// list means that no instance runs.
func (p *Pods) Addresses(workload backlog.Object) ([]backlog.InstanceAddress, error) {
	pods, err := p.list(workload)
	if err != nil {
		return nil, err
	}
	var found []backlog.InstanceAddress
	for _, pod := range pods {
		if !pod.gone && pod.address.IsValid() {
			found = append(found, backlog.InstanceAddress{ID: pod.name, Address: pod.address})
		}
	}
	slices.SortFunc(found, func(x, y backlog.InstanceAddress) int { return strings.Compare(x.ID, y.ID) })
	return found, nil
}

// Health returns the health of the pods of the workload. Without an error, zeros mean that all its pods are healthy.
func (p *Pods) Health(workload backlog.Object) (policy.Pods, error) {
	pods, err := p.list(workload)
	if err != nil {
		return policy.Pods{}, err
	}
	return health(pods), nil
}

// list returns the pods of the workload, or why pods are unknown.
func (p *Pods) list(workload backlog.Object) (pods []*instancePod, err error) {
	watched := cmp.Or(p.watched[workload.Namespace], p.watched[metav1.NamespaceAll])
	if watched == nil {
		return nil, errPodsNotRead
	}
	if err := watched.unknownReason(); err != nil {
		return nil, err
	}
	for _, watch := range watched.watches {
		objects, err := watch.pods.ByIndex(indexInstance, workload.String())
		if err != nil {
			return nil, fmt.Errorf("listing the pods of %s: %w", workload, err)
		}
		for _, object := range objects {
			if pod, ok := object.(*instancePod); ok {
				pods = append(pods, pod)
			}
		}
	}
	return pods, nil
}

// portOf a pod's metrics. An annotation that is no port is ignored: Prometheus would find nothing there either.
func portOf(pod *corev1.Pod) uint16 {
	if port, err := strconv.ParseUint(pod.Annotations[cluster.AnnotationPort], 10, 16); err == nil && port > 0 {
		return uint16(port)
	}
	return defaultInstancePort
}

// Labels of the objects that Pulsar's function worker creates: component is function, sink or source. The others are
// lossy, so they identify nothing.
//
// Source: Pulsar's KubernetesRuntime.getLabels.
const (
	labelWorkerComponent = "component"
	labelWorkerTenant    = "tenant"
	labelWorkerNamespace = "namespace"
	labelWorkerName      = "name"
)

// workerSelector selects the pods of Pulsar's function worker. Function Mesh's pods have some of those labels too.
func workerSelector() (labels.Selector, error) {
	selector := labels.NewSelector()
	for _, one := range []struct {
		key      string
		operator selection.Operator
		values   []string
	}{
		{labelWorkerComponent, selection.In, []string{"function", "sink", "source"}},
		{labelWorkerTenant, selection.Exists, nil},
		{labelWorkerNamespace, selection.Exists, nil},
		{labelWorkerName, selection.Exists, nil},
		{labelComponent, selection.DoesNotExist, nil},
	} {
		requirement, err := labels.NewRequirement(one.key, one.operator, one.values)
		if err != nil {
			return nil, fmt.Errorf("selecting pods of function workers: %w", err)
		}
		selector = selector.Add(*requirement)
	}
	return selector, nil
}

// isOfWorker is workerSelector for the labels that tell the two apart.
func isOfWorker(of map[string]string) bool {
	return of[labelComponent] == "" && of[labelWorkerComponent] != "" && of[labelWorkerTenant] != ""
}
