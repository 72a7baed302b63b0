// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
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
	config   TargetsConfig
	clusters *clusters
}

// TargetsConfig is what NewTargets needs; all fields but DefaultAdminURL are required.
type TargetsConfig struct {
	// Functions reads Functions, as unstructured objects, from memory.
	Functions client.Reader
	// Installed says whether the kind Function exists and its objects are in memory.
	Installed func() bool
	// ConfigMaps reads single ConfigMaps from the API server.
	ConfigMaps client.Reader
	// DefaultAdminURL is the Pulsar admin service of Functions that do not say theirs; empty for none.
	DefaultAdminURL string
	// Now is the time, such as time.Now.
	Now func() time.Time
}

// NewTargets checks the configuration.
func NewTargets(config TargetsConfig) (*Targets, error) {
	if config.Functions == nil || config.Installed == nil || config.ConfigMaps == nil || config.Now == nil {
		return nil, errors.New("targets: Functions, Installed, ConfigMaps and Now must be set")
	}
	address := ""
	if config.DefaultAdminURL != "" {
		var err error
		if address, err = backlog.ParseAdminURL(config.DefaultAdminURL); err != nil {
			return nil, fmt.Errorf("targets: DefaultAdminURL %w", err)
		}
	}
	return &Targets{
		config: config,
		clusters: &clusters{
			reader: config.ConfigMaps, defaultURL: address, now: config.Now, known: map[types.NamespacedName]clusterAddress{},
		},
	}, nil
}

// Found is what became of the search for a target.
type Found struct {
	// Target is nil when it does not exist.
	Target *policy.Target
	// Unsupported is why the kind cannot be scaled; empty when it can.
	Unsupported string
}

// Find returns the target in the namespace. The connection is the policy's own and may be nil. What the user has to
// mend is in the answer; an error is worth a retry.
func (t *Targets) Find(ctx context.Context, namespace string, ref v1alpha1.CrossVersionObjectReference,
	connection *v1alpha1.PulsarConnection,
) (Found, error) {
	if schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind) != functionKind() {
		return Found{Unsupported: fmt.Sprintf("kind %s of %s is not supported: use %s of %s", ref.Kind, ref.APIVersion,
			kindFunction, functionKind().GroupVersion())}, nil
	}
	if !t.config.Installed() {
		return notInstalled(), nil
	}
	object := newFunction()
	err := t.config.Functions.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object)
	switch {
	case meta.IsNoMatchError(err):
		return notInstalled(), nil
	case apierrors.IsNotFound(err):
		return Found{}, nil
	case err != nil:
		return Found{}, fmt.Errorf("reading Function %s/%s: %w", namespace, ref.Name, err)
	}
	target, err := t.target(ctx, object.Object, ref, connection)
	if err != nil {
		return Found{}, err
	}
	return Found{Target: target}, nil
}

func notInstalled() Found {
	return Found{Unsupported: fmt.Sprintf("kind %s of %s is not installed in this cluster: install Function Mesh, which is noticed within %s",
		kindFunction, functionKind().GroupVersion(), lookForKindEvery)}
}

// target decodes a Function and completes it with its subscription.
func (t *Targets) target(ctx context.Context, object map[string]any, ref v1alpha1.CrossVersionObjectReference,
	connection *v1alpha1.PulsarConnection,
) (*policy.Target, error) {
	f, err := decodeFunction(object)
	if err != nil {
		return &policy.Target{Ref: ref, Invalid: err.Error()}, nil //nolint:nilerr // the user's mistake, shown in a condition
	}
	target := f.target(ref)
	topics, invalid := f.topics()
	if invalid != "" {
		target.Invalid = invalid
		return &target, nil
	}
	configMap := types.NamespacedName{Namespace: f.Metadata.Namespace, Name: f.Spec.Pulsar.PulsarConfig}
	cluster, invalid, err := t.clusters.find(ctx, connection, configMap)
	if err != nil {
		return nil, err
	}
	target.Invalid = invalid
	if invalid == "" {
		target.Subscription = backlog.NewSubscription(cluster, f.subscriptionName(), topics...)
	}
	return &target, nil
}

// exists fails with an API server's NotFound when there is no such Function in memory.
func (t *Targets) exists(key types.NamespacedName) error {
	if !t.config.Installed() {
		return fmt.Errorf("%w: Functions are being read, or Function Mesh is not installed", backlog.ErrNoData)
	}
	ctx, cancel := context.WithTimeout(context.Background(), memoryTimeout)
	defer cancel()
	if err := t.config.Functions.Get(ctx, key, newFunction(), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading Function %s: %w", key, err)
	}
	return nil
}

// Doubt says that the cluster of a target does not answer as a Pulsar cluster should, so that a corrected ConfigMap is
// seen within seconds.
func (t *Targets) Doubt(cluster backlog.Cluster) { t.clusters.doubt(cluster) }
