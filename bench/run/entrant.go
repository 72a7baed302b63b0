// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		if err := r.Kube.Create(ctx, object); err != nil {
			return fmt.Errorf("creating what %s %s needs: %w", e.kind().Kind, e.function(), err)
		}
	}
	what := fmt.Sprintf("replicas of %s %s to be ready", e.kind().Kind, e.function())
	err := waitFor(ctx, what, readyTimeout, func(ctx context.Context) (bool, string, error) {
		now, err := readReplicas(ctx, r.Kube, e.workload())
		return now.ready >= int(e.replicas()), fmt.Sprintf("%d of %d", now.ready, e.replicas()), err
	})
	if err != nil {
		return err
	}
	object := e.autoscaler()
	if object == nil {
		return nil
	}
	if err := r.Kube.Create(ctx, object); err != nil {
		return fmt.Errorf("creating the autoscaler of %s: %w", e.function(), err)
	}
	return waitFor(ctx, "the autoscaler of "+e.function(), readyTimeout, func(ctx context.Context) (bool, string, error) {
		return r.scales(ctx, e)
	})
}

// scales reports whether the autoscaler of an entrant works.
func (r *runner) scales(ctx context.Context, e entrant) (ok bool, seen string, err error) {
	kind, wanted := e.works()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := r.Kube.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: e.function()}, object); err != nil {
		return false, "", err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range wanted {
		var found map[string]any
		for _, one := range conditions {
			if fields, isMap := one.(map[string]any); isMap && fields["type"] == condition {
				found = fields
			}
		}
		if found["status"] != string(metav1.ConditionTrue) {
			message, _ := found["message"].(string)
			return false, strings.TrimSuffix(condition+" is not True: "+message, ": "), err
		}
	}
	return err == nil, "", err
}

// works returns the kind of an autoscaler, and the conditions that are True when it works.
func (e entrant) works() (kind schema.GroupVersionKind, conditions []string) {
	switch {
	case e.Policy != nil:
		return policies(), []string{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ConditionScalingActive}
	case e.KEDAPulsar != nil:
		return scaledObjects(), []string{"Ready"}
	default:
		return autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), []string{"ScalingActive"}
	}
}
