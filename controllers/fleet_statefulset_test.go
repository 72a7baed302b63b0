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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestAFleetOfStatefulSetsGovernsThoseOfTheWorkerWhateverTheirNames(t *testing.T) {
	recorded := fixture.RecordedStatefulSets(t)
	resize, job := recorded["pf-public-default-resize"], recorded["pf-public-default-job"]
	other := recorded["pf-public-default-drain"]
	job.SetName("nightly-2207e5fd")
	fixture.SetCommand(t, other, []any{"postgres", "-D", "/data"})
	objects := []client.Object{testFleet("all")}
	for _, object := range []*unstructured.Unstructured{resize, job, other} {
		object.SetNamespace(fixture.Namespace)
		object.SetLabels(map[string]string{"team": "media"})
		object.SetResourceVersion("")
		_, err := target.Transform(object)
		require.NoError(t, err)
		objects = append(objects, object)
	}
	w := newFleetWorld(t, objects...)
	w.update("all", func(p *v1alpha1.AutoscalingPolicy) { p.Spec.TargetSelector.Kind = cluster.KindStatefulSet })
	w.pass("all")
	require.Equal(t, []string{job.GetName(), resize.GetName()}, w.children("all"))
}

func TestAStatefulSetThatBecomesOneOfTheWorkersWakesItsFleet(t *testing.T) {
	before := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
	after := before.DeepCopy()
	changed := func() bool {
		return selectionChanged().Update(event.TypedUpdateEvent[*unstructured.Unstructured]{
			ObjectOld: before,
			ObjectNew: after,
		})
	}
	require.False(t, changed())
	fixture.SetCommand(t, before, []any{"sleep"})
	require.True(t, changed())
}
