// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// testPod is number 0 of Function resize as Function Mesh and a node create it.
func testPod() *corev1.Pod {
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fixture.Namespace, Name: "resize-function-0",
			Labels:          map[string]string{labelComponent: "function", labelName: "resize", "app": "function-mesh"},
			Annotations:     map[string]string{cluster.AnnotationPort: "9094", "prometheus.io/scrape": "true"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "resize-function", Controller: &controller}},
		},
		Spec:   corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "pulsar-function"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.2.0.17"},
	}
}

// watchOf is a watch that has pods from the start.
func watchOf(t *testing.T, pods ...*corev1.Pod) podWatch {
	t.Helper()
	cached := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{indexInstance: indexPod})
	transform := podTransform()
	for _, pod := range pods {
		kept, err := transform(pod)
		require.NoError(t, err)
		require.NoError(t, cached.Add(kept))
	}
	return podWatch{
		pods: cached, run: func(ctx context.Context) { <-ctx.Done() }, synced: func() bool { return true },
	}
}

// podsOf has pods of all namespaces, which are known.
func podsOf(watches ...podWatch) *Pods {
	return &Pods{watched: map[string]*watchedPods{metav1.NamespaceAll: {watches: watches}}}
}

// unreadPods has pods of one namespace, or all, which Start makes known.
func unreadPods(direct client.Reader, namespace string, watches ...podWatch) *watchedPods {
	watched := newWatchedPods(direct, namespace)
	watched.watches = watches
	return watched
}

func resize() backlog.Object {
	return backlog.Object{Kind: cluster.KindFunction, Namespace: fixture.Namespace, Name: "resize"}
}

func instanceAt(id, address string) backlog.InstanceAddress {
	return backlog.InstanceAddress{ID: id, Address: netip.MustParseAddrPort(address)}
}

func TestAddresses(t *testing.T) {
	tests := map[string]struct {
		workload backlog.Object
		change   func(*corev1.Pod)
		want     []backlog.InstanceAddress
	}{
		"as created": {want: []backlog.InstanceAddress{instanceAt("resize-function-0", "10.2.0.17:9094")}},
		"with a port of its own": {
			change: func(p *corev1.Pod) { p.Annotations[cluster.AnnotationPort] = "19000" },
			want:   []backlog.InstanceAddress{instanceAt("resize-function-0", "10.2.0.17:19000")},
		},
		"with an invalid port": {
			change: func(p *corev1.Pod) { p.Annotations[cluster.AnnotationPort] = "99999" },
			want:   []backlog.InstanceAddress{instanceAt("resize-function-0", "10.2.0.17:9094")},
		},
		"with port 0": {
			change: func(p *corev1.Pod) { p.Annotations[cluster.AnnotationPort] = "0" },
			want:   []backlog.InstanceAddress{instanceAt("resize-function-0", "10.2.0.17:9094")},
		},
		"without annotations": {
			change: func(p *corev1.Pod) { p.Annotations = nil },
			want:   []backlog.InstanceAddress{instanceAt("resize-function-0", "10.2.0.17:9094")},
		},
		"with an IPv6 address": {
			change: func(p *corev1.Pod) { p.Status.PodIP = "fd00::1" },
			want:   []backlog.InstanceAddress{instanceAt("resize-function-0", "[fd00::1]:9094")},
		},
		"of a Sink": {
			workload: backlog.Object{Kind: "Sink", Namespace: "media", Name: "resize"},
			change: func(p *corev1.Pod) {
				p.Labels[labelComponent], p.OwnerReferences[0].Name = "sink", "resize-sink"
			},
			want: []backlog.InstanceAddress{instanceAt("resize-function-0", "10.2.0.17:9094")},
		},
		"of another workload":     {workload: backlog.Object{Kind: "Function", Namespace: "media", Name: "crop"}},
		"of another namespace":    {workload: backlog.Object{Kind: "Function", Namespace: "shop", Name: "resize"}},
		"that is not scheduled":   {change: func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }},
		"that has completed":      {change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }},
		"that has no address yet": {change: func(p *corev1.Pod) { p.Status.PodIP = "" }},
		"of the cleanup Job": {change: func(p *corev1.Pod) {
			p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "Job", "resize-function-cleanup"
		}},
		"without a controller": {change: func(p *corev1.Pod) { p.OwnerReferences = nil }},
		"that is being deleted": {change: func(p *corev1.Pod) {
			now := metav1.Now()
			p.DeletionTimestamp, p.Finalizers = &now, []string{"a/b"}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := testPod()
			if test.change != nil {
				test.change(pod)
			}
			p := podsOf(watchOf(t, pod))
			found, err := p.Addresses(cmp.Or(test.workload, resize()))
			require.NoError(t, err)
			require.Equal(t, test.want, found)
		})
	}
}

// podLister is an API server that may forbid to list pods.
type podLister struct {
	client.Reader
	// mu guards the rest.
	mu    sync.Mutex
	fails error
	asked int
	// forbids a namespace.
	forbids string
}

func (l *podLister) List(_ context.Context, _ client.ObjectList, options ...client.ListOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	namespace := (&client.ListOptions{}).ApplyOptions(options).Namespace
	if l.forbids != "" && namespace == l.forbids {
		return apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
	}
	return l.fails
}

func (l *podLister) set(fails error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails, l.forbids = fails, ""
}

func TestForbiddenPodsAreUnknownAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		direct := &podLister{fails: apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))}
		p := &Pods{watched: map[string]*watchedPods{"": unreadPods(direct, "", watchOf(t, testPod()))}}
		_, err := p.Addresses(resize())
		require.ErrorIs(t, err, backlog.ErrNoData)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Start(ctx) }()
		time.Sleep(10 * podProbeInterval)
		synctest.Wait()
		_, err = p.Addresses(resize())
		require.ErrorIs(t, err, backlog.ErrForbidden)
		require.ErrorContains(t, err, "grant it list and watch on pods (value rbac.pods of the chart)")
		_, err = p.Health(resize())
		require.ErrorIs(t, err, backlog.ErrForbidden, "unknown pods are not healthy pods")
		require.Equal(t, 11, direct.asked)

		direct.set(fmt.Errorf("etcd is away"))
		time.Sleep(podProbeInterval)
		synctest.Wait()
		_, err = p.Addresses(resize())
		require.ErrorIs(t, err, backlog.ErrNoData)

		direct.set(nil)
		time.Sleep(podProbeInterval)
		synctest.Wait()
		found, err := p.Addresses(resize())
		require.NoError(t, err)
		require.Len(t, found, 1)
		pods, err := p.Health(resize())
		require.NoError(t, err)
		require.Equal(t, policy.Pods{Unready: 1}, pods, "the pod of the test has no condition")
		cancel()
		require.NoError(t, <-done)
	})
}

func TestANamespaceThatMayNotBeReadHidesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		direct := &podLister{forbids: "billing"}
		p := &Pods{watched: map[string]*watchedPods{
			"media": unreadPods(direct, "media", watchOf(t, testPod())), "billing": unreadPods(direct, "billing", watchOf(t)),
		}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Start(ctx) }()
		synctest.Wait()
		refused := func() {
			_, err := p.Health(backlog.Object{Kind: cluster.KindFunction, Namespace: "billing", Name: "pay"})
			require.ErrorIs(t, err, backlog.ErrForbidden)
			found, err := p.Addresses(resize())
			require.NoError(t, err)
			require.Len(t, found, 1)
		}
		refused()

		direct.set(nil)
		time.Sleep(podProbeInterval)
		synctest.Wait()
		_, err := p.Health(backlog.Object{Kind: cluster.KindFunction, Namespace: "billing", Name: "pay"})
		require.NoError(t, err)
		p.watched["billing"].watchFailed(ctx, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("deleted")))
		synctest.Wait()
		refused()
		cancel()
		require.NoError(t, <-done)
	})
}

func TestPodsAreUnknownAfterTheirWatchIsForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
		direct := &podLister{}
		watched := unreadPods(direct, "", watchOf(t, testPod()))
		p := &Pods{watched: map[string]*watchedPods{"": watched}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Start(ctx) }()
		known := func() error {
			synctest.Wait()
			_, err := p.Addresses(resize())
			_, healthErr := p.Health(resize())
			require.Equal(t, err, healthErr)
			return err
		}
		require.NoError(t, known())

		direct.set(forbidden)
		for range 3 { // as client-go does at every retry
			watched.watchFailed(ctx, nil, forbidden)
			require.ErrorIs(t, known(), backlog.ErrForbidden)
		}
		time.Sleep(10 * podProbeInterval)
		require.ErrorIs(t, known(), backlog.ErrForbidden, "the last list must not stay")

		direct.set(nil)
		time.Sleep(podProbeInterval)
		require.ErrorIs(t, known(), backlog.ErrForbidden, "the watch may not have retried")
		watched.watchFailed(ctx, nil, forbidden)
		time.Sleep(podProbeInterval)
		require.ErrorIs(t, known(), backlog.ErrForbidden, "refused once more")
		time.Sleep(podProbeInterval)
		require.NoError(t, known())
		cancel()
		require.NoError(t, <-done)
	})
}
