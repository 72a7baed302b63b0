// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

const reasonWorkerRestarts = "WorkerRestartsAll"

// workerFunction finds what a function worker runs. There is no object in Kubernetes for it, so only the next
// reconcile notices a change.
func (f *Finder) workerFunction(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (
	*plan.Target, error,
) {
	ref := spec.PulsarFunctionRef
	target := &plan.Target{
		Scaling: plan.ByWorker, NeverZero: true, Component: ref.FullName(),
		Disturbances: workerDisturbances(ref.Kind),
	}
	cluster, err := f.clusters.resolve(ctx, namespace, PulsarSpec{}, spec.Pulsar)
	if err == nil {
		err = f.runsInKubernetes(ctx, namespace, ref)
	}
	if err != nil {
		return target, err
	}
	component, err := Component(ref, cluster)
	if err != nil {
		return target, err
	}
	if cluster.Access == "" {
		if refused := f.workers.refused(ref); refused != "" {
			return target, plan.TargetProblem(v1alpha1.ReasonCredentialsMissing, "%s", refused)
		}
	}
	run, err := f.workers.find(ctx, namespace, component, f.waits)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s from the function worker: %w", component.FullName(), err)
	case errors.Is(run.trouble, backlog.ErrFunctionNotFound):
		return nil, nil //nolint:nilnil // none is a result
	case !run.known:
		return target, plan.TargetProblem(report.UnknownReason(run.trouble), "%s", run.trouble)
	}
	parallelism := int32(min(run.config.Parallelism, maxInstances)) //nolint:gosec // bounded just there
	target.Replicas, target.Subscription, target.SubscriptionType = &parallelism, run.config.Subscription, run.config.Type
	target.NeverAcknowledges = run.config.NeverAcknowledges
	target.Stopped, target.Frozen = run.stopped, f.workers.frozen(component, run)
	return target, nil
}

// maxInstances exceeds any maxReplicas.
const maxInstances = 1 << 20

// Component is the reference as the function worker of the cluster names it. The error is a plan.Violation.
func Component(ref v1alpha1.PulsarFunctionRef, cluster backlog.Cluster) (function.Component, error) {
	component := function.Component{
		Cluster: cluster, Kind: functionKind(string(cmp.Or(ref.Kind, v1alpha1.WorkloadFunction))),
		Tenant: cmp.Or(ref.Tenant, "public"), Namespace: cmp.Or(ref.Namespace, "default"), Name: ref.Name,
	}
	if ref.WorkerURL != "" {
		address, err := backlog.ParseAdminURL(ref.WorkerURL)
		if err != nil {
			return component, Invalidf("the policy's spec.pulsarFunctionRef.workerURL %s", err)
		}
		component.WorkerURL = address
	}
	return component, nil
}

// runsInKubernetes refuses a function that the worker runs as a StatefulSet in the policy's namespace. At each update
// the worker would delete and recreate the StatefulSet with all pods. Scaling the StatefulSet restarts none.
func (f *Finder) runsInKubernetes(ctx context.Context, namespace string, ref v1alpha1.PulsarFunctionRef) error {
	name := function.StatefulSetName(cmp.Or(ref.Tenant, "public"), cmp.Or(ref.Namespace, "default"), ref.Name)
	set, err := f.reader.Object(ctx, cluster.KindStatefulSet, namespace, name)
	if err != nil || set == nil {
		return err
	}
	return Invalidf(
		"the function worker runs it as StatefulSet %s, which it would delete and recreate at each change: in place of "+
			"spec.pulsarFunctionRef set spec.scaleTargetRef to apiVersion apps/v1, kind StatefulSet, name %s", name, name)
}

// workerDisturbances are what a change of the parallelism does, as observed on 4.0.8 and 4.2.4.
//
// Source: org.apache.pulsar.functions.utils.FunctionConfigUtils.convertFromDetails, from which an update starts.
func workerDisturbances(kind v1alpha1.WorkloadKind) []plan.Disturbance {
	message := "each change of the number of instances restarts all of them"
	if cmp.Or(kind, v1alpha1.WorkloadFunction) == v1alpha1.WorkloadFunction {
		message += ", and Pulsar's update loses consumerProperties, skipToLatest, customSchemaOutputs, " +
			"maxPendingAsyncRequests and " +
			"exposePulsarAdminClientEnabled where the function has them: do without these, or run it on Kubernetes"
	}
	return []plan.Disturbance{{Reason: reasonWorkerRestarts, Message: message, Restarts: true}}
}
