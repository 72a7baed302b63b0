// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// podSelection is a selector in a namespace.
type podSelection struct{ namespace, selector string }

// selectedPods is the health of selected pods, or why it is unknown.
type selectedPods struct {
	pods policy.Pods
	err  error
}

// Selected returns the health of the pods of a selector, such as those of a Deployment. They share no label by which to
// watch them, and a watch of all pods of a cluster is expensive. The API server lists them from its own cache, at most
// once per selectedTTL.
func (p *Pods) Selected(namespace, selector string) (policy.Pods, error) {
	found, err := p.selections.Find(context.Background(), podSelection{namespace, selector},
		func(ctx context.Context) (selectedPods, bool, error) {
			pods, err := p.listSelected(ctx, namespace, selector)
			return selectedPods{pods: pods, err: err}, err != nil, nil
		})
	if err != nil {
		return policy.Pods{}, err
	}
	return found.pods, found.err
}

func (p *Pods) listSelected(ctx context.Context, namespace, selector string) (policy.Pods, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return policy.Pods{}, fmt.Errorf("reading the selector of pods %q: %w", selector, err)
	}
	var list corev1.PodList
	err = p.direct.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: parsed},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	switch {
	case apierrors.IsForbidden(err):
		return policy.Pods{}, errPodsForbidden
	case err != nil:
		return policy.Pods{}, fmt.Errorf("listing the pods that %q selects in namespace %s: %w", selector, namespace, err)
	}
	running := int32(0)
	pods := make([]*instancePod, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].Status.Phase == corev1.PodRunning {
			running++ // a pod that is being deleted consumes until it ends
		}
		pods = append(pods, newInstancePod(&list.Items[i]))
	}
	sum := health(pods)
	sum.Running = &running
	return sum, nil
}

// selectedTTL is how long the health of selected pods is cached: a poll interval.
const selectedTTL = 10 * time.Second

func newSelections(now func() time.Time) *target.Lookups[podSelection, selectedPods] {
	return target.NewShortLookups[podSelection, selectedPods](now, selectedTTL)
}
