// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cleanTimeout bounds each step of a clean-up. A pod may take its grace period.
const cleanTimeout = 2 * time.Minute

// Leftovers returns the namespaces of runs that are in progress or did not clean up.
func Leftovers(ctx context.Context, kube client.Client) ([]string, error) {
	var list corev1.NamespaceList
	err := kube.List(ctx, &list, client.MatchingLabels{labelManagedBy: managedBy}, client.HasLabels{labelRun})
	if err != nil {
		return nil, fmt.Errorf("listing namespaces of runs: %w", err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// Clean deletes what a run created: its autoscalers, its Functions, its topics, and last its namespace, from which the
// names of the topics follow. Call it again after an error. adminURL is Pulsar's; empty is that of the run.
func Clean(ctx context.Context, kube client.Client, name, adminURL string, access Access) error {
	namespace := &corev1.Namespace{}
	err := kube.Get(ctx, client.ObjectKey{Name: name}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading namespace %s: %w", name, err)
	case namespace.Labels[labelManagedBy] != managedBy || namespace.Labels[labelRun] == "":
		return fmt.Errorf("namespace %s does not belong to a run: it lacks the labels %s=%s and %s", name,
			labelManagedBy, managedBy, labelRun)
	}
	if err := removeObjects(ctx, kube, name); err != nil {
		return err
	}
	if adminURL == "" {
		adminURL = namespace.Annotations[annotationAdmin]
	}
	service, err := access.admin(adminURL)
	if err != nil {
		return err
	}
	for topic := range strings.FieldsSeq(namespace.Annotations[annotationTopics]) {
		err = errors.Join(err, service.remove(ctx, topic))
	}
	if err != nil {
		return err
	}
	if err := kube.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %s: %w", name, err)
	}
	return waitFor(ctx, "namespace "+name+" to go", cleanTimeout, func(ctx context.Context) (bool, string, error) {
		err := kube.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return apierrors.IsNotFound(err), string(namespace.Status.Phase), client.IgnoreNotFound(err)
	})
}

// removeObjects deletes autoscalers and then Functions, and waits until their pods have ended: a pod would create its
// topics again.
func removeObjects(ctx context.Context, kube client.Client, namespace string) error {
	for _, kind := range []schema.GroupVersionKind{
		policies(), scaledObjects(), autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), functions(),
		deployments(),
	} {
		if err := removeAll(ctx, kube, namespace, kind); err != nil {
			return err
		}
	}
	return awaitNone(ctx, kube, namespace, corev1.SchemeGroupVersion.WithKind("Pod"))
}

// removeAll deletes all objects of a kind and waits until they are gone. It ignores kinds that the cluster lacks.
func removeAll(ctx context.Context, kube client.Client, namespace string, kind schema.GroupVersionKind) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := kube.DeleteAllOf(ctx, object, client.InNamespace(namespace))
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("deleting %s objects of %s: %w", kind.Kind, namespace, err)
	}
	return awaitNone(ctx, kube, namespace, kind)
}

func awaitNone(ctx context.Context, kube client.Client, namespace string, kind schema.GroupVersionKind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	what := fmt.Sprintf("%s objects of %s to be deleted", kind.Kind, namespace)
	return waitFor(ctx, what, cleanTimeout, func(ctx context.Context) (bool, string, error) {
		if err := kube.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, "", err
		}
		return len(list.Items) == 0, fmt.Sprintf("%d left", len(list.Items)), nil
	})
}

// isTransient reports whether a request may succeed on a retry.
func isTransient(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsConflict(err)
}
