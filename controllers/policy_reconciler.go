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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

// PolicyReconciler reconciles AutoscalingPolicies. It runs on the leader only.
type PolicyReconciler struct {
	// PolicyMetrics has the series of each policy.
	PolicyMetrics *metrics.Exporter

	config    reconcilerConfig
	metrics   *controllerMetrics
	memories  *policyMemories
	interest  *interest
	pipelines *pipelines
	laggards  laggards
	progress  progress
	observer  observer
	writers   *writers
	applier   applier
	status    *statusWriter
}

// reconcilerConfig is a Config with what Setup makes of it and of the manager. Worker, Lease and Pods may be left out.
type reconcilerConfig struct {
	Config

	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server who wrote a target: objects in the cache have no managed fields.
	Live     client.Reader
	Recorder events.EventRecorder
	// Targets are found as Config.Targets says.
	Targets *target.Targets
	// Pods reads the health of the targets' pods; nil to ignore pods.
	Pods Health
	// Capabilities returns the known capabilities of the cluster.
	Capabilities func() plan.Capabilities
}

// newPolicyReconciler registers the metrics.
func newPolicyReconciler(config reconcilerConfig) *PolicyReconciler {
	memories, counters := newPolicyMemories(), newControllerMetrics(config.Registerer)
	return &PolicyReconciler{
		PolicyMetrics: metrics.NewExporter(memories.records, config.PolicyMetrics, config.Clock),

		config: config, metrics: counters, memories: memories, interest: newInterest(config.Store),
		pipelines: newPipelines(),
		laggards:  laggards{backlog.NewCache[types.NamespacedName, time.Time](plan.LagsTogether, plan.ManyLag)},
		observer:  observer{config: config, latest: memories.latest},
		writers:   newWriters(config.Live),
		applier: applier{
			client: config.Client, metrics: counters, targets: config.Targets, worker: config.Worker,
			suspender: suspender{config.Client, config.Recorder, config.Targets.Reader},
		},
		status: &statusWriter{client: config.Client, recorder: config.Recorder, metrics: counters},
	}
}

// Reconcile reconciles one policy, as doc.go shows.
func (r *PolicyReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.progress.add(1, r.config.Clock())
	defer func() { r.progress.add(-1, r.config.Clock()) }()
	result, err := r.reconcile(ctx, request.NamespacedName)
	if isTerminating(err) {
		result, err = resultGone, nil // the policy is deleted with its namespace
	}
	if err != nil {
		r.metrics.reconciles.WithLabelValues(resultError).Inc()
		return reconcile.Result{}, err
	}
	r.metrics.reconciles.WithLabelValues(result).Inc()
	switch result {
	case resultGone:
		return reconcile.Result{}, nil
	case resultSuspending, resultRestoring, resultPending, resultWoken:
		return reconcile.Result{RequeueAfter: soon, Priority: new(0)}, nil
	case resultUnreported:
		r.interest.addReport(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	// The next answer usually comes before, and then nothing else is due.
	return reconcile.Result{RequeueAfter: r.config.PollInterval * 5 / 4, Priority: new(routinePriority)}, nil
}

// reconcile returns its result as a label value.
func (r *PolicyReconciler) reconcile(ctx context.Context, key types.NamespacedName) (string, error) {
	r.interest.begin(key)
	var cached v1alpha1.AutoscalingPolicy
	err := r.config.Client.Get(ctx, key, &cached)
	p := r.memories.latest(&cached)
	defer func(version string) {
		if p.ResourceVersion != version {
			r.memories.wrote(ctx, r.config.Client, p)
		}
	}(p.ResourceVersion)
	if err == nil && p.DeletionTimestamp != nil && slices.Contains(p.Finalizers, plan.Finalizer) {
		return r.finalize(ctx, p)
	}
	if apierrors.IsNotFound(err) || (err == nil && p.DeletionTimestamp != nil) {
		// Garbage collection deletes its HorizontalPodAutoscaler.
		r.forget(key)
		return resultGone, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the policy: %w", err)
	}
	return r.reconcilePolicy(ctx, p)
}

// reconcilePolicy observes, decides, plans, applies and reports.
func (r *PolicyReconciler) reconcilePolicy(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (string, error) {
	memory := r.memories.of(p, r.config.Clock())
	observed, err := r.observe(ctx, p, memory)
	defer func() { memory.history = observed.History }()
	if err != nil {
		memory.undecided(err)
		r.pipelines.unknown(client.ObjectKeyFromObject(p))
		if errors.Is(err, target.ErrPending) {
			return resultPending, nil
		}
		return "", errors.Join(err, r.reportFailure(ctx, observed, memory, err))
	}
	decision, state := r.decide(ctx, observed, memory)
	memory.reported = memory.reported.Decided(observed, decision)
	if topic, more := r.pipelines.publishes(client.ObjectKeyFromObject(p), observed, decision); more {
		r.interest.notify(topic)
	}
	if observed.Waiting() {
		memory.undecided(observed.Unknown)
		return resultWaiting, nil
	}
	actions := plan.New(observed, decision)
	if actions.Wait {
		return resultRestoring, nil
	}
	if actions.StatusFirst {
		status := report.Status(observed, memory.reported, decision, state, plan.Unretried(observed, actions))
		if err := r.report(ctx, observed, memory, decision, status); err != nil {
			return "", err
		}
	}
	result := r.applier.apply(ctx, observed, actions)
	if isTerminating(result.ApplyFailed) {
		return "", result.ApplyFailed
	}
	observed.History = observed.History.After(observed, actions, result)
	if under := takeOverResult(actions, result); under != "" {
		return under, nil
	}
	// The status includes failed writes: the existing autoscaler follows the new decision even so.
	status := report.Status(observed, memory.reported, decision, state, result)
	busy := r.status.busy() && r.interest.decisionsWait()
	if under := memory.reportsLater(observed, actions, result, status, busy); under != "" {
		r.metrics.record(observed, memory, decision, status)
		return under, nil
	}
	err = r.report(ctx, observed, memory, decision, status)
	if err == nil {
		memory.decided.Store(&decided{at: observed.Now})
	}
	if err := errors.Join(result.ApplyFailed, unlessEarlier(result.ScaleFailed), err); err != nil {
		return "", err
	}
	return resultOf(observed, decision, result), nil
}

// observe reads the input of a decision, tracks the subscription and reports who changed the replicas.
func (r *PolicyReconciler) observe(ctx context.Context, p *v1alpha1.AutoscalingPolicy, memory *policyMemory) (
	plan.Observed, error,
) {
	observed, err := r.observer.observe(ctx, p, r.config.Clock())
	observed.History, observed.Policies = memory.history, r.memories.count()
	if err != nil {
		return observed, err
	}
	r.interest.follow(client.ObjectKeyFromObject(p), memory.follow(observed))
	observed.Measured = r.observer.measure(observed, memory.pace)
	if subscription := observed.Subscription(); subscription != nil {
		observed.Upstream = r.pipelines.upstream(client.ObjectKeyFromObject(p), *subscription)
	}
	observed.Unset, observed.ManyLag = memory.reported.Unset(observed), r.laggards.many(observed.Now)
	observed.Actuator = plan.Choose(observed.Subject, observed.Autoscalers, observed.Unset)
	r.laggards.see(client.ObjectKeyFromObject(p), observed)
	if took, set := plan.Waited(observed.Subject, observed.Unset); set {
		r.metrics.lag.WithLabelValues(string(observed.Actuator.Type)).Observe(took.Seconds())
	}
	if observed.Unknown != nil && !errors.Is(observed.Unknown, backlog.ErrNoData) {
		r.config.Targets.Invalidate(observed.Subscription().Cluster)
	}
	observed.Writer = r.writers.lookUp(ctx, observed)
	r.reportManualScale(ctx, observed)
	observed.ScaledBy = plan.ScaledBy(observed)
	observed.History = observed.History.Seen(observed)
	return observed, nil
}

// decide returns nil without a target.
func (r *PolicyReconciler) decide(ctx context.Context, observed plan.Observed, memory *policyMemory) (
	*policy.Decision, policy.State,
) {
	if observed.Subscription() == nil {
		memory.paused, memory.pace = true, backlog.Usual
		return nil, policy.State{}
	}
	before, unread := memory.state(observed)
	if memory.resume == nil {
		r.applier.resumeUpdates(observed.Subject, before.Decided.At)
	}
	r.reportForgotten(ctx, observed.Policy, unread, before.Forgets(observed.Policy.Spec))
	in := plan.Input(observed)
	decision, after := policy.Decide(in, before)
	memory.resume = &after
	if pace := after.Zero.Pace(in); pace != memory.pace {
		memory.pace = pace
		r.interest.follow(client.ObjectKeyFromObject(observed.Policy), memory.follow(observed))
	}
	return &decision, after
}

func (r *PolicyReconciler) forget(key types.NamespacedName) {
	r.interest.follow(key, nil)
	r.memories.forget(key)
	r.pipelines.forget(key)
	r.config.Targets.Workers.Withdraw(key)
}

// takeOverResult is the result of a reconcile that ends after suspending or restoring another autoscaler; else empty.
func takeOverResult(actions plan.Actions, result plan.Result) string {
	switch {
	case result.Suspended:
		return resultSuspending
	case actions.Restore != nil && result.Violation == nil && result.ApplyFailed == nil:
		return resultRestoring
	default:
		return ""
	}
}
