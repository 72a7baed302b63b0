// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// freshIntervals is how many poll intervals old a reading may be to take replicas down on: one failed fetch and one
// late one are normal.
const freshIntervals = 3

// PolicyReconciler turns policies into decisions, and decisions into HorizontalPodAutoscalers and statuses. It runs on
// the leader only.
type PolicyReconciler struct {
	config    ReconcilerConfig
	metrics   *controllerMetrics
	tracked   *trackedPolicies
	observer  observer
	conflicts conflictResolver
	applier   applier
	status    statusWriter
}

// ReconcilerConfig is what NewPolicyReconciler needs; all fields but Pods and Worker are required.
type ReconcilerConfig struct {
	// Client reads from the cache and writes to the API server. What it wrote it must read again: see ClientOptions.
	Client   client.Client
	Recorder events.EventRecorder
	Store    *backlog.Store
	Targets  *target.Targets
	// Pods are the targets'; nil where they are left alone.
	Pods Health
	// Worker changes what function workers run; nil where they are left alone.
	Worker WorkerChanger
	// Abilities of the cluster, as far as they are known.
	Abilities func() plan.Capabilities
	// PollInterval of the poller, from 1s to 5m.
	PollInterval time.Duration
	// Clock is the time, such as time.Now.
	Clock      func() time.Time
	Registerer prometheus.Registerer
}

// NewPolicyReconciler checks the configuration and registers the metrics.
func NewPolicyReconciler(config ReconcilerConfig) (*PolicyReconciler, error) {
	switch {
	case config.Client == nil || config.Recorder == nil || config.Store == nil || config.Targets == nil ||
		config.Abilities == nil || config.Clock == nil || config.Registerer == nil:
		return nil, errors.New(
			"policy reconciler: Client, Recorder, Store, Targets, Abilities, Clock and Registerer must be set")
	case config.PollInterval < time.Second || config.PollInterval > 5*time.Minute:
		return nil, fmt.Errorf("policy reconciler: PollInterval is %s, must be from 1s to 5m", config.PollInterval)
	}
	metrics, err := newControllerMetrics(config.Registerer)
	if err != nil {
		return nil, fmt.Errorf("policy reconciler: %w", err)
	}
	observer := observer{
		client: config.Client, targets: config.Targets, abilities: config.Abilities, store: config.Store, pods: config.Pods,
		pollInterval: config.PollInterval,
	}
	applier := applier{
		client: config.Client, metrics: metrics, scalers: newScalers(config),
		seesScaledObjects: func() bool { return config.Targets.Reader.Installed(cluster.KindScaledObject) },
	}
	return &PolicyReconciler{
		config: config, metrics: metrics, tracked: newTrackedPolicies(config.Store), observer: observer, applier: applier,
		conflicts: conflictResolver{
			client: config.Client, recorder: config.Recorder, clock: config.Clock, observer: observer, applier: applier,
		},
		status: statusWriter{client: config.Client, recorder: config.Recorder, metrics: metrics},
	}, nil
}

// Reconcile takes one policy through the walk of doc.go.
func (r *PolicyReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, request.NamespacedName)
	if err != nil {
		r.metrics.reconciles.WithLabelValues(resultError).Inc()
		return reconcile.Result{}, err
	}
	r.metrics.reconciles.WithLabelValues(result).Inc()
	switch result {
	case resultGone:
		return reconcile.Result{}, nil
	case resultTakingOver, resultGivingBack:
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{RequeueAfter: r.config.PollInterval}, nil
}

// reconcile returns how it ended, as a label value.
func (r *PolicyReconciler) reconcile(ctx context.Context, key types.NamespacedName) (string, error) {
	var p v1alpha1.AutoscalingPolicy
	err := r.config.Client.Get(ctx, key, &p)
	if err == nil && p.DeletionTimestamp != nil && slices.Contains(p.Finalizers, plan.Finalizer) {
		return r.finalize(ctx, &p)
	}
	if apierrors.IsNotFound(err) || (err == nil && p.DeletionTimestamp != nil) {
		// Its HorizontalPodAutoscaler goes with it: garbage collection follows the owner reference.
		r.forget(key)
		return resultGone, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the policy: %w", err)
	}
	return r.walk(ctx, &p)
}

// walk takes a policy that names its target from what is to what is written.
func (r *PolicyReconciler) walk(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (string, error) {
	observed, err := r.observer.observe(ctx, p)
	if err != nil {
		return "", err
	}
	outcome := plan.Outcome{
		Now: r.config.Clock(), Observed: observed, Violation: plan.Check(observed),
		Actuator: observed.Choose(),
	}
	memory := r.tracked.follow(p, r.followed(outcome))
	memory.present(trackable(outcome), outcome.Now)
	outcome, evaluation := r.decide(outcome, memory)
	r.report(ctx, outcome, memory)
	if waiting(outcome) {
		return resultWaiting, nil
	}
	outcome, under, err := r.conflicts.resolve(ctx, outcome, memory)
	if under != "" || err != nil {
		return under, err
	}
	actions := plan.New(outcome, decisionOf(evaluation))
	if actions.StatusFirst && !memory.refused.stands(p, met(outcome), outcome.Now) {
		if err := r.status.write(ctx, outcome, evaluation); err != nil {
			return "", err
		}
	}
	// What was decided is reported even so: the autoscaler that there is goes on to ask for it.
	outcome = outcome.After(r.applier.apply(ctx, actions, outcome, memory))
	if err := errors.Join(outcome.ApplyFailed, outcome.ScaleFailed, r.status.write(ctx, outcome, evaluation)); err != nil {
		return "", err
	}
	return resultOf(outcome, evaluation), nil
}

// resolve resolves conflicts with other autoscalers before anything is written, and returns the result of the reconcile
// where that is all it does.
func (c conflictResolver) resolve(ctx context.Context, outcome plan.Outcome, memory *policyMemory) (
	resolved plan.Outcome, under string, err error,
) {
	outcome, restoring, err := c.restoreRefused(ctx, outcome, memory)
	if restoring || err != nil {
		return outcome, resultGivingBack, err
	}
	outcome, suspended := c.suspendNext(ctx, outcome, memory)
	if suspended {
		return outcome, resultTakingOver, nil
	}
	return outcome, "", nil
}

// forget drops what is kept for a policy that is gone.
func (r *PolicyReconciler) forget(key types.NamespacedName) {
	r.tracked.forget(key)
	r.metrics.show(key, nil, nil)
}

// trackable is the subscription to follow, or nil while there is none: its target is missing or cannot be scaled. An
// autoscaler that stands in the way is no reason to look away: the status goes on showing what would be done.
func trackable(outcome plan.Outcome) *backlog.Subscription {
	if outcome.Observed.Policy.Spec.Mode == v1alpha1.ModeOff {
		return nil
	}
	if v := outcome.Violation; v != nil && v.Condition == v1alpha1.ConditionTargetFound {
		return nil
	}
	return &outcome.Observed.Target.Subscription
}

// decide reads what a decision rests on and decides, or returns nil when there is no target to decide for.
func (r *PolicyReconciler) decide(outcome plan.Outcome, memory *policyMemory) (plan.Outcome, *plan.Evaluation) {
	subscription := trackable(outcome)
	if subscription == nil {
		memory.paused = true
		return outcome, nil
	}
	in := r.observer.input(outcome.Observed, *subscription, outcome.Now)
	in.Recreated = memory.recreated(outcome.Observed.Target.UID)
	outcome.Unknown = in.Unknown
	if in.Unknown != nil && !errors.Is(in.Unknown, backlog.ErrNoData) {
		r.config.Targets.Invalidate(subscription.Cluster)
	}
	if in.Unknown == nil {
		outcome.Reading, memory.target = &in.Reading, outcome.Observed.Target.UID
	}
	before := memory.state(outcome.Observed.Policy.Status, in.CurrentReplicas, outcome.Now)
	memory.forgot = before.Forgets(in.Spec)
	decision, after := policy.Decide(in, before)
	memory.resume, outcome.Surplus = &after, decision.Surplus
	return outcome, &plan.Evaluation{Decision: decision, State: after, Reading: in.Reading}
}

// waiting says that the first answer of Pulsar is under way for a policy that has a decision already: a process that
// just took over, or a new input topic. What stands in the status stays in force for that second or two; an answer that
// fails has another reason, so this ends. Writing it down would turn every policy's status over at every change of
// the leader. A changed spec does not wait: a Pulsar that hangs may take minutes to be asked about every topic.
func waiting(outcome plan.Outcome) bool {
	p := outcome.Observed.Policy
	return outcome.Violation == nil && errors.Is(outcome.Unknown, backlog.ErrNoData) &&
		p.Status.DesiredReplicas != nil && p.Status.ObservedGeneration == p.Generation
}

// resultOf names how a reconcile ended.
func resultOf(outcome plan.Outcome, result *plan.Evaluation) string {
	switch {
	case outcome.Observed.Policy.Spec.Mode == v1alpha1.ModeOff:
		return resultOff
	case outcome.Violation != nil:
		return resultViolated
	case outcome.Unknown != nil:
		return resultUnknown
	case result.Decision.Hold != nil:
		return resultHeld
	default:
		return resultDecided
	}
}

// statusWriter writes the status of a policy, and records what changed.
type statusWriter struct {
	client   client.Client
	recorder events.EventRecorder
	metrics  *controllerMetrics
}

// write writes the status if it differs, and then records events and logs the change.
func (w statusWriter) write(ctx context.Context, outcome plan.Outcome, result *plan.Evaluation) error {
	p := outcome.Observed.Policy
	before := p.Status
	after := plan.Status(before, outcome, result)
	w.metrics.show(client.ObjectKeyFromObject(p), after.DesiredReplicas, after.CurrentReplicas)
	if !plan.StatusDiffers(before, after, outcome.Now) {
		return nil
	}
	if err := w.patch(ctx, p, after); err != nil {
		return err
	}
	p.Status = after
	for _, e := range newEvents(before, after) {
		w.recorder.Eventf(p, nil, e.kind, e.reason, e.action, "%s", e.note)
	}
	if from, to, changed := desiredChange(before, after); changed {
		log.FromContext(ctx).Info("desired replicas changed", "from", from, "to", to, "mode", p.Spec.Mode,
			"why", plan.Because(after.Decision))
	}
	return nil
}

// patch writes what differs. There is no optimistic lock: only the controller writes this status. The next
// reconcile handles a change of the spec meanwhile (observedGeneration says which spec was answered).
func (w statusWriter) patch(ctx context.Context, p *v1alpha1.AutoscalingPolicy,
	after v1alpha1.AutoscalingPolicyStatus,
) error {
	written := p.DeepCopy()
	written.Status = after
	if err := w.client.Status().Patch(ctx, written, client.MergeFrom(p)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // deleted meanwhile; its own event follows
		}
		w.metrics.statusPatches.WithLabelValues(patchError).Inc()
		return fmt.Errorf("writing the status: %w", err)
	}
	w.metrics.statusPatches.WithLabelValues(patchDone).Inc()
	return nil
}
