// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func TestAFleetOfStatefulSetsGovernsThoseOfTheWorkerWhateverTheirNames(t *testing.T) {
	recorded := recordedStatefulSets(t)
	resize, job := recorded["pf-public-default-resize"], recorded["pf-public-default-job"]
	other := recorded["pf-public-default-drain"]
	job.SetName("nightly-2207e5fd")
	withCommand(t, other, []any{"postgres", "-D", "/data"})
	objects := []client.Object{testFleet("all")}
	for _, object := range []*unstructured.Unstructured{resize, job, other} {
		object.SetNamespace(testNamespace)
		object.SetLabels(map[string]string{"team": "media"})
		object.SetResourceVersion("")
		_, err := slim(object)
		require.NoError(t, err)
		objects = append(objects, object)
	}
	w := newFleetWorld(t, objects...)
	w.update("all", func(p *v1alpha1.AutoscalingPolicy) { p.Spec.TargetSelector.Kind = kindStatefulSet })
	w.pass("all")
	require.Equal(t, []string{job.GetName(), resize.GetName()}, w.children("all"))
}

func TestAStatefulSetThatBecomesOneOfTheWorkersWakesItsFleet(t *testing.T) {
	before := recordedStatefulSets(t)["pf-public-default-resize"]
	after := before.DeepCopy()
	changed := func() bool {
		return selectionChanged().Update(event.TypedUpdateEvent[*unstructured.Unstructured]{
			ObjectOld: before,
			ObjectNew: after,
		})
	}
	require.False(t, changed())
	withCommand(t, before, []any{"sleep"})
	require.True(t, changed())
}
