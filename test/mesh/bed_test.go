// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

const (
	patience = cluster.WaitLimit
	often    = 20 * time.Millisecond
	settings = "pulsar"
)

// bed is a control plane with the operator and fake replicas.
type bed struct {
	operator *Operator
	runner   *fakeRunner
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	stop     func() error // ends the operator, once
}

func newBed(t *testing.T) *bed {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a real control plane")
	}
	crds, err := filepath.Glob("crd/*.yaml")
	require.NoError(t, err)
	c, err := cluster.Start(t.Context(), cluster.Config{CRDs: crds, HPASyncPeriod: time.Second, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	b := &bed{runner: &fakeRunner{}}
	b.client, err = kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	b.dynamic, err = dynamic.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	_, err = b.client.CoreV1().ConfigMaps("default").Create(t.Context(),
		PulsarConfig("default", settings, "http://127.0.0.1:8080", "pulsar://127.0.0.1:6650"), metav1.CreateOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	b.operator, err = NewOperator(Config{REST: c.RESTConfig(), Runner: b.runner, RestartBackoff: often})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- b.operator.Run(ctx) }()
	b.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { require.NoError(t, b.stop()) })
	return b
}

func (b *bed) functions() dynamic.ResourceInterface {
	return b.dynamic.Resource(GroupVersion().WithResource("functions")).Namespace("default")
}

func (b *bed) sinks() dynamic.ResourceInterface {
	return b.dynamic.Resource(GroupVersion().WithResource("sinks")).Namespace("default")
}

// create creates a Function and waits for its replicas.
func (b *bed) create(t *testing.T, name string, replicas, maximum int32) {
	t.Helper()
	f := Function("default", name, FunctionConfig{
		Topics: []string{"in"}, PulsarConfig: settings, Replicas: replicas, MaxReplicas: maximum,
	})
	_, err := b.functions().Create(t.Context(), f, metav1.CreateOptions{})
	require.NoError(t, err)
	b.running(t, name, int(replicas))
}

func (b *bed) scale(t *testing.T, name string, replicas int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := b.functions().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	require.NoError(t, err)
}

func (b *bed) scaleStatefulSet(t *testing.T, name string, replicas int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := b.client.AppsV1().StatefulSets("default").Patch(t.Context(), name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "scale")
	require.NoError(t, err)
}

func (b *bed) annotate(t *testing.T, name, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, annotationManaged, value)
	_, err := b.functions().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// running waits until exactly the ordinals below n consume.
func (b *bed) running(t *testing.T, name string, n int) {
	t.Helper()
	want := []int{}
	for i := range n {
		want = append(want, i)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.ElementsMatch(c, want, b.runner.alive(name))
		require.Equal(c, n, b.operator.Running("default", name))
	}, patience, often)
}

// status waits until good accepts the status.
func (b *bed) status(t *testing.T, name string, good func(status, *unstructured.Unstructured) bool) status {
	t.Helper()
	var s status
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		f, err := b.functions().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(c, err)
		now, err := readStatus(f)
		require.NoError(c, err)
		require.True(c, good(now, f), "%v", now)
		s = now
	}, patience, often)
	return s
}

func (b *bed) desired(name string) []int { return b.operator.Desired("default", name, time.Time{}) }

func (b *bed) statefulSetReplicas(t *testing.T, name string) (replicas int32, generation int64) {
	t.Helper()
	set, err := b.client.AppsV1().StatefulSets("default").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return *set.Spec.Replicas, set.Generation
}
