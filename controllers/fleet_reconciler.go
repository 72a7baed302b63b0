// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// fleetWriters is how many children of a fleet are written at once: 1000 new ones take some seconds so, and leave the
	// API server room for others.
	fleetWriters = 8
	// fleetAgain is how often a fleet is looked at in any case: a kind that is installed without an object is no event.
	fleetAgain = time.Minute
)

// FleetReconciler keeps a policy for each object that the targetSelector of a policy matches: the children of a fleet.
// What they do is the PolicyReconciler's business. It runs on the leader only.
type FleetReconciler struct {
	config  FleetConfig
	metrics *fleetMetrics

	// mu guards memories, not what they point to: reconciles of a fleet never overlap.
	mu       sync.Mutex
	memories map[types.NamespacedName]*fleetMemory
}

// FleetConfig is what NewFleetReconciler needs; all fields are required.
type FleetConfig struct {
	// Client reads policies from the cache and writes to the API server. It must read its own writes: see ClientOptions.
	Client client.Client
	// Workloads reads objects, unstructured, from the cache.
	Workloads client.Reader
	// Installed says whether the kind exists and its objects are in memory.
	Installed func(kind string) bool
	Recorder  events.EventRecorder
	// Clock is the time, such as time.Now.
	Clock      func() time.Time
	Registerer prometheus.Registerer
}

// NewFleetReconciler checks the configuration and registers the metrics.
func NewFleetReconciler(config FleetConfig) (*FleetReconciler, error) {
	if config.Client == nil || config.Workloads == nil || config.Installed == nil || config.Recorder == nil ||
		config.Clock == nil ||
		config.Registerer == nil {
		return nil, errors.New("fleet reconciler: Client, Workloads, Installed, Recorder, Clock and Registerer must be set")
	}
	metrics, err := newFleetMetrics(config.Registerer)
	if err != nil {
		return nil, fmt.Errorf("fleet reconciler: %w", err)
	}
	return &FleetReconciler{config: config, metrics: metrics, memories: map[types.NamespacedName]*fleetMemory{}}, nil
}

// Reconcile makes the children of one fleet what they should be, and writes its status.
func (r *FleetReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, again, err := r.reconcile(ctx, request.NamespacedName)
	if err != nil {
		r.metrics.reconciles.WithLabelValues(resultError).Inc()
		return reconcile.Result{}, err
	}
	r.metrics.reconciles.WithLabelValues(result).Inc()
	return reconcile.Result{RequeueAfter: again}, nil
}

// reconcile returns how it ended, as a label value, and when to come again; 0 for never.
func (r *FleetReconciler) reconcile(ctx context.Context, key types.NamespacedName) (string, time.Duration, error) {
	var p v1alpha1.AutoscalingPolicy
	err := r.config.Client.Get(ctx, key, &p)
	if client.IgnoreNotFound(err) != nil {
		return "", 0, fmt.Errorf("reading the policy: %w", err)
	}
	if apierrors.IsNotFound(err) || p.DeletionTimestamp != nil || p.Spec.TargetSelector == nil {
		r.forget(key) // its children go with it: garbage collection follows their owner references
		return resultGone, 0, nil
	}
	observed, err := r.observe(ctx, &p)
	if err != nil {
		return "", 0, err
	}
	memory := r.memory(key)
	if observed.Awaited, err = r.awaited(ctx, observed, memory); err != nil {
		return "", 0, err
	}
	outcome := plan.FleetOutcome{Now: r.config.Clock(), World: observed}
	outcome.Failed = r.carryOut(ctx, &outcome, memory)
	wait, err := r.report(ctx, outcome, memory)
	if err := errors.Join(outcome.Failed, err); err != nil {
		return "", 0, err
	}
	if observed.Violation != nil {
		return resultViolated, wait, nil
	}
	return resultFleet, wait, nil
}

// observe reads all policies of the namespace, and the objects that match. Both lists are from the cache and are not
// copied: at 1000 targets what follows takes about 7 ms of a processor while nothing changes (BenchmarkFleet).
func (r *FleetReconciler) observe(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (plan.FleetWorld, error) {
	selector, violation := plan.FleetSelector(p)
	kind := string(p.Spec.TargetSelector.Kind)
	if violation == nil && !r.config.Installed(kind) {
		violation = &plan.Violation{
			Condition: v1alpha1.ConditionTargetFound, Reason: v1alpha1.ReasonTargetKindUnsupported,
			Message: target.NotInstalled(kind),
		}
	}
	if violation != nil {
		return plan.FleetWorld{Policy: p, Violation: violation}, nil
	}
	objects := cluster.NewUnstructuredList(kind)
	err := r.config.Workloads.List(ctx, objects, client.InNamespace(p.Namespace),
		client.MatchingLabelsSelector{Selector: selector},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return plan.FleetWorld{}, fmt.Errorf("listing objects of kind %s: %w", kind, err)
	}
	var policies v1alpha1.AutoscalingPolicyList
	if err := r.config.Client.List(ctx, &policies, client.InNamespace(p.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return plan.FleetWorld{}, fmt.Errorf("listing policies: %w", err)
	}
	selectable := make([]plan.Selectable, 0, len(objects.Items))
	for i := range objects.Items {
		object := &objects.Items[i]
		selectable = append(selectable, plan.Selectable{
			Name: object.GetName(), Labels: object.GetLabels(), Controller: target.ControllerOf(object),
			OfWorker: kind == cluster.KindStatefulSet && target.IsOfWorker(object),
		})
	}
	return plan.NewFleetWorld(p, policies.Items, selectable), nil
}

// carryOut removes and applies children, and notes in the outcome what was refused.
func (r *FleetReconciler) carryOut(ctx context.Context, outcome *plan.FleetOutcome, memory *fleetMemory) error {
	actions, err := plan.NewFleetPlan(outcome.World)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(fleetWriters)
	for _, child := range actions.Remove {
		group.Go(func() error { return r.remove(ctx, child) })
	}
	p := outcome.World.Policy
	refused := make([]refusedChild, len(actions.Apply))
	for i, child := range actions.Apply {
		if before, known := memory.refused[child.Object]; known && before.stands(p, child, outcome.Now) {
			refused[i] = before
			continue
		}
		group.Go(func() error {
			why, err := r.apply(ctx, child)
			refused[i] = refusedChild{why: why, at: outcome.Now, generation: p.Generation, live: uidOf(child)}
			return err
		})
	}
	err = group.Wait()
	memory.refused = map[string]refusedChild{}
	for i, child := range actions.Apply {
		if refused[i].why != "" {
			memory.refused[child.Object] = refused[i]
		}
	}
	for i := range outcome.World.Matched {
		object := &outcome.World.Matched[i]
		object.Refused = memory.refused[object.Name].why
	}
	return err
}

// stands says that trying again would be refused again.
func (c refusedChild) stands(p *v1alpha1.AutoscalingPolicy, child plan.ChildPlan, now time.Time) bool {
	return c.generation == p.Generation && c.live == uidOf(child) && now.Sub(c.at) < retryRefusedEvery
}

// uidOf the policy that is to be changed; empty for one that is to be made.
func uidOf(child plan.ChildPlan) types.UID {
	if child.Child.UID == nil {
		return ""
	}
	return *child.Child.UID
}

// apply makes a child what it should be, or returns why the API server refuses. The controller reverts a user's
// change of its child, but nothing in a policy that a user created under that name meanwhile.
func (r *FleetReconciler) apply(ctx context.Context, child plan.ChildPlan) (refused string, err error) {
	options := []client.ApplyOption{client.FieldOwner(plan.FieldManager)}
	if !child.Anew {
		options = append(options, client.ForceOwnership)
	}
	name := *child.Child.Name
	err = r.config.Client.Apply(ctx, child.Child, options...)
	switch {
	case err == nil:
		r.metrics.children.WithLabelValues(applyDone).Inc()
		log.FromContext(ctx).Info("policy applied", "child", name, "target", child.Object, "anew", child.Anew)
		return "", nil
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		r.metrics.children.WithLabelValues(applyConflict).Inc()
		return fmt.Sprintf("another field manager owns AutoscalingPolicy %s: %s", name, err), nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		r.metrics.children.WithLabelValues(applyRefused).Inc()
		return err.Error(), nil
	default:
		r.metrics.children.WithLabelValues(applyError).Inc()
		return "", fmt.Errorf("applying AutoscalingPolicy %s: %w", name, err)
	}
}

// remove deletes a child; its HorizontalPodAutoscaler goes with it, and the replicas stay.
func (r *FleetReconciler) remove(ctx context.Context, child *v1alpha1.AutoscalingPolicy) error {
	err := r.config.Client.Delete(ctx, child.DeepCopy(), client.Preconditions{UID: &child.UID})
	if client.IgnoreNotFound(err) != nil {
		r.metrics.children.WithLabelValues(removeError).Inc()
		return fmt.Errorf("deleting AutoscalingPolicy %s: %w", child.Name, err)
	}
	r.metrics.children.WithLabelValues(removeDone).Inc()
	log.FromContext(ctx).Info("policy deleted", "child", child.Name)
	return nil
}

// report writes the status if that is due, and returns when to come again.
func (r *FleetReconciler) report(ctx context.Context, outcome plan.FleetOutcome, memory *fleetMemory) (time.Duration,
	error,
) {
	p := outcome.World.Policy
	after := plan.FleetStatus(p.Status, outcome)
	wait, differs := plan.FleetStatusDue(p.Status, after, outcome.Now.Sub(memory.writtenAt))
	switch {
	case !differs:
		return fleetAgain, nil
	case wait > 0:
		return wait, nil
	}
	written := p.DeepCopy()
	written.Status = after
	if err := r.config.Client.Status().Patch(ctx, written, client.MergeFrom(p)); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil // deleted meanwhile; its own event follows
		}
		r.metrics.statusPatches.WithLabelValues(patchError).Inc()
		return 0, fmt.Errorf("writing the status: %w", err)
	}
	memory.writtenAt = outcome.Now
	r.metrics.statusPatches.WithLabelValues(patchDone).Inc()
	for _, e := range newEvents(p.Status, after) {
		r.config.Recorder.Eventf(p, nil, e.kind, e.reason, e.action, "%s", e.note)
	}
	return fleetAgain, nil
}
