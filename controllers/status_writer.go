// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

// reportFailure writes why nothing was decided, even after the reconcile's timeout; nothing while the process ends.
func (r *PolicyReconciler) reportFailure(ctx context.Context, observed plan.Observed, memory *policyMemory,
	why error,
) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	return r.report(ctx, observed, memory, nil, report.Failed(observed, why))
}

func (m *controllerMetrics) record(observed plan.Observed, memory *policyMemory, decision *policy.Decision,
	after v1alpha1.AutoscalingPolicyStatus,
) {
	record := memory.record.Load().Next(observed, decision, after, memory.reported.Late())
	memory.record.Store(record)
	if took, by, done := record.Actuated(); done {
		m.actuation.WithLabelValues(by).Observe(took.Seconds())
	}
}

// report updates the metrics, and writes the status if that is due.
func (r *PolicyReconciler) report(ctx context.Context, observed plan.Observed, memory *policyMemory,
	decision *policy.Decision, after v1alpha1.AutoscalingPolicyStatus,
) error {
	r.metrics.record(observed, memory, decision, after)
	var err error
	if memory.reported, err = r.status.write(ctx, observed, memory.reported, after); err != nil {
		memory.undecided(err)
	}
	return err
}

// statusWriter writes the status of a policy, and records what changed.
type statusWriter struct {
	client   client.Client
	recorder events.EventRecorder
	metrics  *controllerMetrics
	// writing is the number of statuses that are written now.
	writing atomic.Int32
}

// busy reports whether half of the workers write statuses. The other half is for decisions.
func (w *statusWriter) busy() bool { return w.writing.Load() >= workers/2 }

// write writes the status if that is due, records the due events, and returns the updated history.
func (w *statusWriter) write(ctx context.Context, observed plan.Observed, history report.History,
	after v1alpha1.AutoscalingPolicyStatus,
) (report.History, error) {
	p := observed.Policy
	before := p.Status
	written := p
	due := report.Due(observed, history, after)
	if !due {
		after = before // events repeat the written status
	} else {
		var err error
		if written, err = w.patch(ctx, p, after); err != nil {
			return history, err
		}
	}
	worth, history := report.Events(observed, history, after)
	for _, e := range worth {
		recordEvent(ctx, w.recorder, p, e)
	}
	if due {
		history = history.Reported(observed.Now, before, after)
		*p = *written
	}
	return history, nil
}

// patch writes the difference, without an optimistic lock: only the controller writes this status. The next reconcile
// handles a change of the spec meanwhile; observedGeneration shows which spec the status is for. It returns the policy
// that the API server has then.
func (w *statusWriter) patch(ctx context.Context, p *v1alpha1.AutoscalingPolicy,
	after v1alpha1.AutoscalingPolicyStatus,
) (*v1alpha1.AutoscalingPolicy, error) {
	written := p.DeepCopy()
	after.DeepCopyInto(&written.Status) // the answer is decoded into it, and after shares numbers with the cache
	w.writing.Add(1)
	defer w.writing.Add(-1)
	if err := w.client.Status().Patch(ctx, written, client.MergeFrom(p)); err != nil {
		if apierrors.IsNotFound(err) {
			return written, nil // deleted meanwhile; its own event follows
		}
		w.metrics.statusPatches.WithLabelValues("error").Inc()
		return nil, fmt.Errorf("writing the status: %w", err)
	}
	written.ManagedFields = nil // as in the cache
	w.metrics.statusPatches.WithLabelValues("patched").Inc()
	return written, nil
}
