// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Targets finds what a policy scales. It is safe for concurrent use.
type Targets struct {
	config      TargetsConfig
	clusters    *clusters
	credentials *Credentials
	workers     *workerFunctions
}

// TargetsConfig is what NewTargets needs; all fields but DefaultAdminURL, OwnCredentials and those of workers are
// required.
type TargetsConfig struct {
	// Workloads reads Functions, Sinks, Sources and StatefulSets, as unstructured objects, and policies, from memory.
	Workloads client.Reader
	// Installed says whether the kind exists and its objects are in memory.
	Installed func(kind string) bool
	// Objects reads single ConfigMaps and Secrets from the API server.
	Objects client.Reader
	// DefaultAdminURL is the Pulsar admin service of objects that do not say theirs; empty for none.
	DefaultAdminURL     string
	FunctionCredentials FunctionCredentials
	OwnCredentials      OwnCredentials
	// WorkerCredentials says who function workers take the adapter for; empty is PolicyWorkerCredentials.
	WorkerCredentials WorkerCredentials
	InstanceMetrics   InstanceMetrics
	// Worker asks function workers; nil where they are left alone.
	Worker Worker
	// Consumers is how many consumers a subscription has, as was measured last, or why that is unknown; required with
	// Worker.
	Consumers func(backlog.Subscription) (int, error)
	// WorkerUpdateInterval is the least time between two changes of one function, from 1s to 1h; 0 is
	// DefaultWorkerUpdateInterval.
	WorkerUpdateInterval time.Duration
	// Now is the time, such as time.Now.
	Now func() time.Time
}

// NewTargets checks the configuration.
func NewTargets(config TargetsConfig) (*Targets, error) {
	if config.Workloads == nil || config.Installed == nil || config.Objects == nil || config.Now == nil {
		return nil, errors.New("targets: Workloads, Installed, Objects and Now must be set")
	}
	if config.InstanceMetrics != PodInstanceMetrics && config.InstanceMetrics != NoInstanceMetrics {
		return nil, fmt.Errorf("targets: InstanceMetrics is %q, must be %s or %s", config.InstanceMetrics, PodInstanceMetrics,
			NoInstanceMetrics)
	}
	address := ""
	if config.DefaultAdminURL != "" {
		var err error
		if address, err = backlog.ParseAdminURL(config.DefaultAdminURL); err != nil {
			return nil, fmt.Errorf("targets: DefaultAdminURL %w", err)
		}
	}
	if err := config.checkWorkerCredentials(); err != nil {
		return nil, err
	}
	credentials, err := newCredentials(config.Objects, config.FunctionCredentials, config.OwnCredentials, config.Now)
	if err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	workers, err := newWorkerFunctions(config)
	if err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	return &Targets{
		config: config, clusters: newClusters(config.Objects, address,
			config.Now), credentials: credentials, workers: workers,
	}, nil
}

// Found is what became of the search for a target.
type Found struct {
	// Target is nil when it does not exist.
	Target *policy.Target
	// Unsupported is why the kind cannot be scaled; empty when it can.
	Unsupported string
}

// Find returns what a policy in the namespace scales: the target and the connection of its spec. What the user has to
// mend is in the answer; an error is worth a retry.
func (t *Targets) Find(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (Found, error) {
	ref := spec.ScaleTargetRef
	switch kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind); {
	case spec.PulsarFunctionRef.Name != "":
		return t.workerFunction(ctx, namespace, spec)
	case kind == workloadKind(kindFunctionMesh):
		return t.meshComponent(ctx, namespace, spec)
	case kind == watchedKind(kindStatefulSet):
		return t.statefulSet(ctx, namespace, spec)
	case slices.Contains(workloadKinds(), ref.Kind) && kind == workloadKind(ref.Kind):
		return t.workload(ctx, namespace, ref, spec.Pulsar)
	default:
		return Found{Unsupported: fmt.Sprintf(
			"kind %s of %s is not supported: use %s, %s, %s or %s of %s, or StatefulSet of apps/v1", ref.Kind,
			ref.APIVersion, kindFunction, kindSink, kindSource, kindFunctionMesh, workloadKind(
				kindFunction).GroupVersion())}, nil
	}
}

// workload finds a Function, Sink or Source.
func (t *Targets) workload(ctx context.Context, namespace string, ref v1alpha1.ScaleTargetRef,
	connection *v1alpha1.PulsarConnection,
) (Found, error) {
	kind := ref.Kind
	if !t.config.Installed(kind) {
		return notInstalled(kind), nil
	}
	object := newWorkload(kind)
	err := t.config.Workloads.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object)
	switch {
	case meta.IsNoMatchError(err):
		return notInstalled(kind), nil
	case apierrors.IsNotFound(err):
		return Found{}, nil
	case err != nil:
		return Found{}, fmt.Errorf("reading %s %s/%s: %w", kind, namespace, ref.Name, err)
	}
	target, err := t.target(ctx, object.Object, ref, connection)
	if err != nil {
		return Found{}, err
	}
	return Found{Target: target}, nil
}

func notInstalled(kind string) Found {
	return Found{Unsupported: fmt.Sprintf(
		"kind %s of %s is not installed in this cluster: install Function Mesh, which is noticed within %s",
		kind, workloadKind(kind).GroupVersion(), lookForKindEvery)}
}

// target decodes an object and completes it with its subscription.
func (t *Targets) target(ctx context.Context, object map[string]any, ref v1alpha1.ScaleTargetRef,
	connection *v1alpha1.PulsarConnection,
) (*policy.Target, error) {
	w, err := decodeWorkload(ref.Kind, object)
	if err != nil {
		return &policy.Target{Ref: ref, Invalid: err.Error()}, nil //nolint:nilerr // the user's mistake, shown in a condition
	}
	target := w.target(ref)
	consumed, invalid := w.consumed()
	if invalid != "" {
		target.Invalid = invalid
		return &target, nil
	}
	cluster, invalid, err := t.cluster(ctx, w, connection)
	if err != nil {
		return nil, err
	}
	target.Invalid = invalid
	if invalid == "" {
		target.SubscriptionType, target.Subscription = consumed.kind, consumed.subscription
		target.Subscription.Cluster = cluster
		if t.config.InstanceMetrics == PodInstanceMetrics {
			target.Subscription.Workload = workloadKey(w.Kind, w.Metadata.Namespace, w.Metadata.Name)
		}
	}
	return &target, nil
}

// cluster is where the object's Pulsar is and who to be there, or why that cannot be told.
func (t *Targets) cluster(ctx context.Context, w workload, connection *v1alpha1.PulsarConnection) (
	cluster backlog.Cluster, invalid string, err error,
) {
	cluster, invalid, err = t.clusters.find(ctx, connection, w.configMap())
	if err != nil || invalid != "" {
		return cluster, invalid, err
	}
	plan := planCredentials(cluster.AdminURL, w.Metadata.Namespace, connection, w.Spec.Pulsar)
	cluster.Access, invalid, err = t.credentials.find(ctx, connection, plan)
	return cluster, invalid, err
}

// configMap is where the object says which Pulsar it uses; without a name when it does not say.
func (w workload) configMap() types.NamespacedName {
	return types.NamespacedName{Namespace: w.Metadata.Namespace, Name: w.Spec.Pulsar.PulsarConfig}
}

// exists fails with an API server's NotFound when there is no such object in memory, and with a mistakeError for a
// StatefulSet that the function worker did not make.
func (t *Targets) exists(kind string, key types.NamespacedName) error {
	if !t.config.Installed(kind) {
		return notRead(kind)
	}
	ctx, cancel := context.WithTimeout(context.Background(), memoryTimeout)
	defer cancel()
	object := newWorkload(kind)
	if err := t.config.Workloads.Get(ctx, key, object, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	if kind == kindStatefulSet {
		return measurable(object)
	}
	return nil
}

// notRead is why nothing is known of a kind.
func notRead(kind string) error {
	if kind == kindStatefulSet {
		return fmt.Errorf("%w: StatefulSets are being read", backlog.ErrNoData)
	}
	return fmt.Errorf("%w: objects of kind %s are being read, or Function Mesh is not installed", backlog.ErrNoData, kind)
}

// Doubt says that the cluster of a target does not answer as a Pulsar cluster should, so that a corrected ConfigMap or
// Secret is seen within seconds.
func (t *Targets) Doubt(cluster backlog.Cluster) {
	t.clusters.doubt(cluster)
	t.credentials.Doubt(cluster.Access)
}

// forget drops the ConfigMaps and Secrets that nobody has asked for lately.
func (t *Targets) forget(now time.Time) {
	t.clusters.addresses.forget(now)
	t.clusters.doubts.forget(now)
	t.workers.forget(now)
	t.credentials.plans.forget(now)
	t.credentials.secrets.contents.forget(now)
}
