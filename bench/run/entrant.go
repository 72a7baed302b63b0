// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// readyTimeout covers an image pull and the start of an autoscaler.
const readyTimeout = 5 * time.Minute

// create creates topics, and the Function and autoscaler of each stage, and returns when replicas are ready and the
// autoscalers work.
func (r *runner) create(ctx context.Context, e entrant) error {
	topics := e.topics()
	for i, topic := range topics {
		partitions := e.scenario.Partitions
		if i == len(topics)-1 {
			partitions = 0 // the meter reads one topic
		}
		if err := r.admin.create(ctx, topic, partitions); err != nil {
			return err
		}
	}
	for _, stage := range e.stages() {
		if err := r.createStage(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

// createStage creates Function and autoscaler of a stage.
func (r *runner) createStage(ctx context.Context, e entrant) error {
	r.tell("%s: creating %s %s: %s", e.Name, e.kind().Kind, e.function(), e.setting())
	objects := []client.Object{e.workload()}
	if !e.isDeployment() {
		objects = []client.Object{e.connection(), e.workload()}
	}
	for _, object := range objects {
		if err := r.kube.Create(ctx, object); err != nil {
			return fmt.Errorf("creating what %s %s needs: %w", e.kind().Kind, e.function(), err)
		}
	}
	what := fmt.Sprintf("replicas of %s %s to be ready", e.kind().Kind, e.function())
	err := waitFor(ctx, what, readyTimeout, func(ctx context.Context) (bool, string, error) {
		now, err := readReplicas(ctx, r.kube, e.workload())
		return now.ready >= int(e.replicas()), fmt.Sprintf("%d of %d", now.ready, e.replicas()), err
	})
	if err != nil {
		return err
	}
	object := e.autoscaler()
	if object == nil {
		return nil
	}
	if err := r.kube.Create(ctx, object); err != nil {
		return fmt.Errorf("creating the autoscaler of %s: %w", e.function(), err)
	}
	return waitFor(ctx, "the autoscaler of "+e.function(), readyTimeout, func(ctx context.Context) (bool, string, error) {
		return r.scales(ctx, e)
	})
}

// scales reports whether the autoscaler of an entrant works.
func (r *runner) scales(ctx context.Context, e entrant) (ok bool, seen string, err error) {
	key := client.ObjectKey{Namespace: e.namespace, Name: e.function()}
	if e.Policy != nil {
		policy := &v1alpha1.AutoscalingPolicy{}
		if err := r.kube.Get(ctx, key, policy); err != nil {
			return false, "", err
		}
		for _, condition := range []string{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ConditionScalingActive} {
			found := meta.FindStatusCondition(policy.Status.Conditions, condition)
			if found == nil || found.Status != "True" {
				return false, condition + " is not True" + messageOf(found), nil
			}
		}
		return true, "", nil
	}
	object, condition := e.autoscalerKind()
	if err := r.kube.Get(ctx, key, object); err != nil {
		return false, "", err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if fields, isMap := one.(map[string]any); isMap && fields["type"] == condition {
			return fields["status"] == "True", fmt.Sprintf("%s: %v", condition, fields["message"]), err
		}
	}
	return false, condition + " is not set", err
}

// autoscalerKind returns an object for a ScaledObject or a HorizontalPodAutoscaler, and the condition to wait for.
func (e entrant) autoscalerKind() (object *unstructured.Unstructured, condition string) {
	object = &unstructured.Unstructured{}
	if e.KEDAPulsar != nil {
		object.SetGroupVersionKind(scaledObjects())
		return object, "Ready"
	}
	object.SetAPIVersion("autoscaling/v2")
	object.SetKind("HorizontalPodAutoscaler")
	return object, "ScalingActive"
}

// messageOf returns the message of a condition, if there is one.
func messageOf(condition *metav1.Condition) string {
	if condition == nil {
		return ""
	}
	return ": " + condition.Message
}
