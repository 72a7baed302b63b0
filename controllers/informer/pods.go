// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	// direct checks at the API server whether the adapter may list pods: a forbidden watch fails silently and never ends.
	direct client.Reader
	// cache of pods alone: the adapter works without it.
	cache cache.Cache
	every time.Duration
	// selections are the health of selected pods that are not in the cache.
	selections *target.Lookups[podSelection, selectedPods]
	// forbidden signals that the watch of pods is forbidden; it holds one signal.
	forbidden chan struct{}

	// mu guards unknown.
	mu sync.Mutex
	// unknown is why pods are unknown; nil when they are known.
	unknown error
}

// NewPods creates a cache of pods with the connection of a manager. The cache has pods while Start runs.
func NewPods(ctx context.Context, mgr manager.Manager) (*Pods, error) {
	selector, err := instanceSelector()
	if err != nil {
		return nil, err
	}
	p := &Pods{
		direct: mgr.GetAPIReader(), every: podProbeInterval, forbidden: make(chan struct{}, 1),
		unknown: errPodsNotRead, selections: newSelections(time.Now),
	}
	ofWorkers, err := workerSelector()
	if err != nil {
		return nil, err
	}
	var both podCaches
	for _, one := range []struct {
		into *cache.Cache
		of   labels.Selector
	}{{&both.Cache, selector}, {&both.ofWorkers, ofWorkers}} {
		*one.into, err = cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
			ByObject:                 map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: one.of, Transform: transformPod}},
			DefaultWatchErrorHandler: p.watchFailed,
		})
		if err != nil {
			return nil, fmt.Errorf("creating a cache of pods: %w", err)
		}
	}
	p.cache = both
	if err := p.cache.IndexField(ctx, &corev1.Pod{}, indexInstance, indexPod); err != nil {
		return nil, fmt.Errorf("indexing pods: %w", err)
	}
	return p, nil
}

var (
	errPodsNotRead   = fmt.Errorf("%w: pods are being read", backlog.ErrNoData)
	errPodsForbidden = fmt.Errorf("%w: the adapter may not list pods: grant it list and watch on pods, or set "+
		"--instance-metrics=Off", backlog.ErrForbidden)
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

// indexPod is the function of the index. A pod is an instance when the workload's StatefulSet controls it: the Job that
// cleans up after a workload gives its pod the same labels.
func indexPod(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); isOfWorker(object.GetLabels()) && owner != nil &&
		owner.Kind == cluster.KindStatefulSet {
		return []string{target.WorkloadKey(cluster.KindStatefulSet, object.GetNamespace(), owner.Name)}
	}
	for _, kind := range cluster.WorkloadKinds() {
		name := object.GetLabels()[labelName]
		if object.GetLabels()[labelComponent] != strings.ToLower(kind) || name == "" {
			continue
		}
		owner := metav1.GetControllerOf(object)
		statefulSet := plan.FunctionMeshName(v1alpha1.ScaleTargetRef{Kind: kind, Name: name})
		if owner != nil && owner.Kind == cluster.KindStatefulSet && owner.Name == statefulSet {
			return []string{target.WorkloadKey(kind, object.GetNamespace(), name)}
		}
	}
	return nil
}

// Addresses returns where the running instances of the workload serve their metrics, sorted. Without an error, an empty
// list means that no instance runs.
func (p *Pods) Addresses(workload string) ([]backlog.InstanceAddress, error) {
	pods, err := p.list(workload)
	if err != nil {
		return nil, err
	}
	var found []backlog.InstanceAddress
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" {
			found = append(found, backlog.InstanceAddress{
				ID: pod.Name, HostPort: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(portOf(pod))),
			})
		}
	}
	slices.SortFunc(found, func(x, y backlog.InstanceAddress) int { return strings.Compare(x.ID, y.ID) })
	return found, nil
}

// Health returns the health of the pods of the workload. Without an error, zeros mean that all its pods are healthy.
func (p *Pods) Health(workload string) (policy.Pods, error) {
	pods, err := p.list(workload)
	if err != nil {
		return policy.Pods{}, err
	}
	return health(pods), nil
}

// list returns the pods of the workload, which callers must not modify, or why pods are unknown.
func (p *Pods) list(workload string) ([]corev1.Pod, error) {
	if err := p.unknownReason(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), target.CacheTimeout)
	defer cancel()
	var list corev1.PodList
	if err := p.cache.List(ctx, &list, client.MatchingFields{indexInstance: workload},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", workload, err)
	}
	return list.Items, nil
}

// portOf a pod's metrics. An annotation that is no port is ignored: Prometheus would find nothing there either.
func portOf(pod *corev1.Pod) int {
	if port, err := strconv.ParseUint(pod.Annotations[cluster.AnnotationPort], 10, 16); err == nil && port > 0 {
		return int(port)
	}
	return defaultInstancePort
}
