// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

const (
	// writers is how many policies of a set are written at once: 1000 new ones take some seconds, and the API server keeps
	// capacity for other clients.
	writers = 8
	// resyncEvery is how often a set is reconciled without an event: the installation of a kind without objects causes
	// none.
	resyncEvery = time.Minute
)

// Reconciler maintains a policy for each object that an AutoscalingPolicySet selects. It runs on the leader only.
type Reconciler struct {
	config  Config
	metrics *setMetrics

	// mu guards memories, not what they point to: reconciles of a set never overlap.
	mu       sync.Mutex
	memories map[types.NamespacedName]*setMemory
}

// Config configures New; all fields are required.
type Config struct {
	// Client reads policies and sets from the cache and writes to the API server.
	Client client.Client
	// Objects reads the objects that sets select from the cache.
	Objects  *target.Reader
	Recorder events.EventRecorder
	// Clock is the clock, such as time.Now.
	Clock      func() time.Time
	Registerer prometheus.Registerer
}

// New validates the configuration and registers the metrics.
func New(config Config) (*Reconciler, error) {
	if config.Client == nil || config.Objects == nil || config.Recorder == nil || config.Clock == nil ||
		config.Registerer == nil {
		return nil, errors.New("policy sets: Client, Objects, Recorder, Clock and Registerer must be set")
	}
	return &Reconciler{
		config: config, metrics: newMetrics(config.Registerer), memories: map[types.NamespacedName]*setMemory{},
	}, nil
}

// Reconcile creates, updates and deletes the policies of one set, and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, again, err := r.reconcile(ctx, request.NamespacedName)
	if err != nil {
		r.metrics.reconciles.WithLabelValues(resultError).Inc()
		return reconcile.Result{}, err
	}
	r.metrics.reconciles.WithLabelValues(result).Inc()
	return reconcile.Result{RequeueAfter: again}, nil
}

// reconcile returns its result as a label value, and when to reconcile again; 0 for never.
func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) (string, time.Duration, error) {
	var cached v1alpha1.AutoscalingPolicySet
	err := r.config.Client.Get(ctx, key, &cached)
	if client.IgnoreNotFound(err) != nil {
		return "", 0, fmt.Errorf("reading the policy set: %w", err)
	}
	if apierrors.IsNotFound(err) || cached.DeletionTimestamp != nil {
		r.forget(key) // garbage collection deletes its policies by their owner references
		return resultGone, 0, nil
	}
	memory := r.memory(&cached)
	policySet := memory.latest(&cached)
	observed, err := r.observe(ctx, policySet, memory)
	if errors.Is(err, errUnseen) {
		return resultWaiting, statusDelay, nil
	}
	if err != nil {
		return "", 0, err
	}
	outcome := set.Outcome{Now: r.config.Clock(), Observed: observed}
	actions, err := set.New(observed)
	if err != nil {
		return "", 0, err
	}
	var done set.Actions
	done, outcome.Failed = r.write(ctx, actions, outcome, memory)
	answered(outcome.Observed.Matched, done, memory)
	wait, err := r.report(ctx, outcome, memory)
	r.record(policySet, policyEvents(done))
	if err := errors.Join(outcome.Failed, err); err != nil {
		return "", 0, err
	}
	if observed.Violation != nil {
		return resultViolated, wait, nil //nolint:nilerr // a violation is a result
	}
	return resultReconciled, wait, nil
}

// answered adds what the API server answered: why it refused a policy, and the generation of one that was applied. The
// status that was read is of the spec before.
func answered(matched []set.MatchedObject, done set.Actions, memory *setMemory) {
	generations := map[string]int64{}
	for _, planned := range done.Apply {
		generations[planned.Policy.Name] = planned.Policy.Generation
	}
	for i := range matched {
		object := &matched[i]
		object.Refused = memory.refused[object.PolicyName].reason
		if generation := generations[object.PolicyName]; generation != 0 && object.Live != nil {
			object.Live = new(*object.Live) // the cache has this one
			object.Live.Generation = generation
		}
	}
}

// write deletes and applies policies, and remembers refused ones. It returns what was done.
func (r *Reconciler) write(ctx context.Context, actions set.Actions, outcome set.Outcome,
	memory *setMemory,
) (done set.Actions, err error) {
	var group errgroup.Group
	group.SetLimit(writers)
	deleted := make([]bool, len(actions.Delete))
	for i, p := range actions.Delete {
		group.Go(func() (err error) {
			deleted[i], err = r.delete(ctx, p)
			return err
		})
	}
	policySet := outcome.Observed.Set
	applied, refused := make([]bool, len(actions.Apply)), make([]refusal, len(actions.Apply))
	for i, planned := range actions.Apply {
		if before, known := memory.refused[planned.Policy.Name]; known && before.stands(policySet, planned, outcome.Now) {
			refused[i] = before
			continue
		}
		group.Go(func() error {
			reason, err := r.apply(ctx, planned)
			applied[i] = err == nil && reason == ""
			refused[i] = refusal{reason: reason, at: outcome.Now, generation: policySet.Generation, live: planned.Policy.UID}
			return err
		})
	}
	err = group.Wait()
	memory.refused = map[string]refusal{}
	for i, planned := range actions.Apply {
		if refused[i].reason != "" {
			memory.refused[planned.Policy.Name] = refused[i]
		}
		if applied[i] {
			done.Apply = append(done.Apply, planned)
		}
	}
	for i, p := range actions.Delete {
		if deleted[i] {
			done.Delete = append(done.Delete, p)
		}
	}
	memory.wrote(done, outcome.Now)
	return done, err
}

// apply applies a policy, or returns why the API server refuses. The controller reverts changes of its policy by a
// user. It does not touch a policy that a user created under that name meanwhile.
func (r *Reconciler) apply(ctx context.Context, planned set.PlannedPolicy) (refused string, err error) {
	var options []client.ApplyOption
	if !planned.Create {
		options = append(options, client.ForceOwnership)
	}
	p, name := planned.Policy, planned.Policy.Name
	answer, err := cluster.Apply(ctx, r.config.Client, p, options...)
	switch {
	case err == nil:
		p.UID, p.Generation, p.ResourceVersion = answer.GetUID(), answer.GetGeneration(), answer.GetResourceVersion()
		r.metrics.policies.WithLabelValues(applyDone).Inc()
		log.FromContext(ctx).Info("policy applied", "policy", name, "create", planned.Create)
		return "", nil
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		r.metrics.policies.WithLabelValues(applyConflict).Inc()
		return fmt.Sprintf("another field manager owns AutoscalingPolicy %s: %s", name, err), nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		r.metrics.policies.WithLabelValues(applyRefused).Inc()
		return err.Error(), nil
	default:
		r.metrics.policies.WithLabelValues(applyError).Inc()
		return "", fmt.Errorf("applying AutoscalingPolicy %s: %w", name, err)
	}
}

// delete deletes a policy. Garbage collection deletes its HorizontalPodAutoscaler, and the replicas stay.
func (r *Reconciler) delete(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (deleted bool, err error) {
	err = r.config.Client.Delete(ctx, p.DeepCopy(), client.Preconditions{UID: &p.UID})
	if client.IgnoreNotFound(err) != nil {
		r.metrics.policies.WithLabelValues(deleteError).Inc()
		return false, fmt.Errorf("deleting AutoscalingPolicy %s: %w", p.Name, err)
	}
	r.metrics.policies.WithLabelValues(deleteDone).Inc()
	log.FromContext(ctx).Info("policy deleted", "policy", p.Name)
	return true, nil
}

// report writes the status if that is due, and returns when to reconcile again.
func (r *Reconciler) report(ctx context.Context, outcome set.Outcome, memory *setMemory) (time.Duration, error) {
	policySet := outcome.Observed.Set
	after := set.Status(policySet.Status, outcome)
	wait, differs := set.StatusDue(policySet.Status, after, outcome.Now.Sub(memory.writtenAt))
	switch {
	case !differs:
		return resyncEvery, nil
	case wait > 0:
		return wait, nil
	}
	patched := policySet.DeepCopy()
	patched.Status = after
	if err := r.config.Client.Status().Patch(ctx, patched, client.MergeFrom(policySet)); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil // deleted meanwhile; its own event follows
		}
		r.metrics.statusPatches.WithLabelValues(patchError).Inc()
		return 0, fmt.Errorf("writing the status: %w", err)
	}
	memory.live, memory.writtenAt = patched, outcome.Now
	r.metrics.statusPatches.WithLabelValues(patchDone).Inc()
	r.record(policySet, conditionEvents(policySet.Status, after))
	return resyncEvery, nil
}
