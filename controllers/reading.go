// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// ReadingConfig is what SetupReading needs: all but DefaultAdminURL, OwnCredentials, WorkerCredentials and
// PolicyChanged are required. Fields are those of Config.
type ReadingConfig struct {
	Store               *backlog.Store
	DefaultAdminURL     string
	FunctionCredentials FunctionCredentials
	OwnCredentials      OwnCredentials
	WorkerCredentials   WorkerCredentials
	InstanceMetrics     InstanceMetrics
	// Worker reads what function workers run.
	Worker Worker
	// Lease whose holder decides for all policies.
	Lease types.NamespacedName
	Clock func() time.Time
	// PolicyChanged is told of every policy that came, changed or went, after it did in memory. It must not block.
	PolicyChanged func(policy types.NamespacedName)
}

// Reading is what is known of Kubernetes, from memory, in a process that never writes there.
type Reading struct {
	Signals       *Signals
	Policies      *Policies
	DecisionMaker *DecisionMaker
	ScaledObjects *ScaledObjects
	// Credentials are for the reader of Pulsar.
	Credentials *Credentials
	// Pods are for the reader of instances; nil with NoInstanceMetrics.
	Pods *Pods

	all installations
}

// readKinds are all kinds whose objects a Reading brings into memory, where they are installed and may be read. None of
// them is needed: what rests on one that is not there says so.
func readKinds() []string {
	return append(measuredKinds(), kindFunctionMesh, kindScaledObject, kindAutoscaler, kindPolicy, kindLease)
}

// SetupReading registers what reads Kubernetes with a manager that was made with Scheme and CacheOptions: no
// reconciler, no writes, no events. Nothing runs before the manager starts, and nothing is asked of the API server.
func SetupReading(ctx context.Context, mgr manager.Manager, config ReadingConfig) (*Reading, error) {
	if config.Store == nil || config.Worker == nil || config.Clock == nil {
		return nil, errors.New("controllers: Store, Worker and Clock must be set")
	}
	all := installations{}
	for _, kind := range readKinds() {
		all[kind] = &installation{
			kind: kind, kinds: mgr.GetRESTMapper(), cache: mgr.GetCache(), every: lookForKindEvery, looked: make(
				chan struct{}), lenient: true,
			watch: func() error { return nil },
		}
		if err := mgr.Add(all[kind]); err != nil {
			return nil, fmt.Errorf("controllers: adding the watch of %s: %w", kind, err)
		}
	}
	targets, err := NewTargets(TargetsConfig{
		Workloads: mgr.GetCache(), Installed: all.installed, Objects: mgr.GetAPIReader(),
		DefaultAdminURL: config.DefaultAdminURL, FunctionCredentials: config.FunctionCredentials,
		OwnCredentials:    config.OwnCredentials,
		WorkerCredentials: config.WorkerCredentials, InstanceMetrics: config.InstanceMetrics, Worker: config.Worker,
		Consumers: Config{Store: config.Store, Clock: config.Clock}.consumers, Now: config.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	pods, err := watchPods(ctx, mgr, config.InstanceMetrics)
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	maker, err := newFollower(config.Lease, config.Clock)
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	all[kindLease].watch = func() error { return maker.follow(ctx, mgr.GetCache()) }
	all[kindPolicy].watch = func() error { return tellOfPolicies(ctx, mgr.GetCache(), config.PolicyChanged) }
	policies := &Policies{
		reader: mgr.GetCache(), synced: all[kindPolicy].ready.Load, missing: func() error { return all.missing(kindPolicy) },
	}
	signals, err := NewSignals(SignalsConfig{Store: config.Store, Targets: targets, Policies: policies, Now: config.Clock})
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	if err := mgr.Add(signals); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	return &Reading{
		Signals: signals, Policies: policies, DecisionMaker: maker, Credentials: targets.credentials, Pods: pods,
		ScaledObjects: &ScaledObjects{reader: mgr.GetCache(), installed: all.installed, missing: all.missing}, all: all,
	}, nil
}

// tellOfPolicies passes on what the watch of policies sees.
func tellOfPolicies(ctx context.Context, informers cache.Informers, tell func(types.NamespacedName)) error {
	if tell == nil {
		return nil
	}
	informer, err := informers.GetInformer(ctx, newObject(kindPolicy), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching policies: %w", err)
	}
	toldOf := func(object any) {
		if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if p, ok := object.(client.Object); ok {
			tell(client.ObjectKeyFromObject(p))
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: toldOf, UpdateFunc: func(_, object any) { toldOf(object) }, DeleteFunc: toldOf,
	})
	if err != nil {
		return fmt.Errorf("watching policies: %w", err)
	}
	return nil
}

// Ready fails until each kind is in memory or was seen to be absent; one that may not be read is waited for no longer
// than a minute.
func (r *Reading) Ready() error {
	var waiting []string
	for kind, i := range r.all {
		select {
		case <-i.looked:
		default:
			waiting = append(waiting, kind)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	slices.Sort(waiting)
	return fmt.Errorf("%w: objects are being read: %s", backlog.ErrNoData, strings.Join(waiting, ", "))
}

// missing says that the kind is not installed, and what to do about it; nil otherwise.
func (all installations) missing(kind string) error {
	if !all[kind].absent.Load() {
		return nil
	}
	what := map[string]string{
		kindPolicy: "install the CustomResourceDefinition of pulsar-autoscaler, or say target, function, sink or " +
			"topic in place of policy",
		kindScaledObject: "install KEDA",
	}[kind]
	return fmt.Errorf("%w: kind %s of %s is not installed in this cluster: %s; it is noticed within %s",
		backlog.ErrUnsupported, kind,
		watchedKind(kind).GroupVersion(), what, lookForKindEvery)
}
