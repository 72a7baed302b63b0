// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestObjectsByLabels(t *testing.T) {
	labelled, plain, function, sink := fixture.Policy(), fixture.Policy(), fixture.Function(), fixture.Function()
	sink.SetGroupVersionKind(cluster.WorkloadGVK(cluster.KindSink))
	sink.SetName("files")
	labelled.Name, labelled.UID, labelled.Labels = "labelled", "uid-labelled", map[string]string{"team": "media"}
	function.SetLabels(map[string]string{"team": "media"})
	recorded := fixture.RecordedStatefulSets(t)
	made, other := recorded["pf-public-default-resize"], recorded["pf-public-default-job"]
	for _, object := range []*unstructured.Unstructured{made, other} {
		object.SetNamespace(fixture.Namespace)
		object.SetResourceVersion("")
		object.SetLabels(map[string]string{"team": "media"})
	}
	other.SetName("postgres")
	fixture.SetCommand(t, other, []any{"postgres", "-D", "/data"})
	c := newTestClient(t, labelled, plain, function, sink, made, other)
	read := true
	objects := NewReader(c, func(string) bool { return read })
	media := labels.SelectorFromSet(labels.Set{"team": "media"})

	names, err := objects.Names(v1alpha1.GroupResource(), fixture.Namespace, labels.Everything())
	require.NoError(t, err)
	require.Equal(t, []string{"labelled", "resize"}, names)
	names, err = objects.Names(v1alpha1.GroupResource(), fixture.Namespace, media)
	require.NoError(t, err)
	require.Equal(t, []string{"labelled"}, names)
	names, err = objects.Names(cluster.ResourceFor(cluster.KindFunction), fixture.Namespace, media)
	require.NoError(t, err)
	require.Equal(t, []string{"resize"}, names)
	names, err = objects.Names(cluster.ResourceFor(cluster.KindSink), fixture.Namespace, labels.Everything())
	require.NoError(t, err)
	require.Equal(t, []string{"files"}, names)
	for _, selector := range []labels.Selector{media, labels.Everything()} {
		names, err = objects.Names(cluster.ResourceFor(cluster.KindStatefulSet), fixture.Namespace, selector)
		require.NoError(t, err)
		require.Equal(t, []string{"pf-public-default-resize"}, names,
			"only StatefulSets of the function worker have signals")
	}
	names, err = objects.Names(cluster.ResourceFor(cluster.KindFunction), "elsewhere", labels.Everything())
	require.NoError(t, err)
	require.Empty(t, names)

	_, err = objects.Names(schema.GroupResource{Resource: "pods"}, fixture.Namespace, media)
	require.True(t, apierrors.IsNotFound(err))
	read = false
	for _, resource := range []schema.GroupResource{
		cluster.ResourceFor(cluster.KindFunction), cluster.ResourceFor(cluster.KindStatefulSet),
	} {
		_, err = objects.Names(resource, fixture.Namespace, media)
		require.ErrorIs(t, err, backlog.ErrNoData)
	}
}
