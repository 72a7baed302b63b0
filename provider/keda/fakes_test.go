// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

var errBrokerDown = errors.New("unreachable: the broker does not answer")

// world is what a server reads: everything of it may be changed while it runs.
type world struct {
	mu       sync.Mutex
	policies map[types.NamespacedName]*v1alpha1.AutoscalingPolicy
	readings map[Subject]backlog.Reading
	replicas map[types.NamespacedName]int32
	// unread is why nothing can be read; nil while it can.
	unread error
	// dead is why nobody decides; nil while somebody does.
	dead error
	// hang, when set, blocks readers of signals until it is closed.
	hang chan struct{}
	// hanging counts them.
	hanging int
	now     time.Time
	log     records
}

func newWorld() *world {
	return &world{
		policies: map[types.NamespacedName]*v1alpha1.AutoscalingPolicy{}, readings: map[Subject]backlog.Reading{},
		replicas: map[types.NamespacedName]int32{}, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
	}
}

func (w *world) change(how func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how()
}

func (w *world) pass(d time.Duration) { w.change(func() { w.now = w.now.Add(d) }) }

func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) Policy(key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, found := w.policies[key]; found {
		return p, nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.GroupResource(), key.Name)
}

func (w *world) Alive(time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

func (w *world) Read(subject Subject, _ time.Time) (backlog.Reading, error) {
	w.mu.Lock()
	hang := w.hang
	if hang != nil {
		w.hanging++
	}
	reading, found := w.readings[subject]
	err := w.unread
	w.mu.Unlock()
	if hang != nil {
		<-hang
	}
	switch {
	case err != nil:
		return backlog.Reading{}, err
	case !found:
		return backlog.Reading{}, backlog.ErrNoData
	}
	return reading, nil
}

func (w *world) Replicas(key types.NamespacedName) (int32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r, found := w.replicas[key]; found {
		return r, nil
	}
	return 0, errors.New("no such ScaledObject")
}

// records are what was logged.
type records struct {
	mu    sync.Mutex
	lines []string
}

func (r *records) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(line))
	return len(line), nil
}

func (r *records) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// config of a server of this world.
func (w *world) config() Config {
	return Config{
		Policies: w, DecisionMaker: w, Signals: w, ScaledObjects: w, Now: w.Now, HoldFor: time.Hour,
		Logger:     slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{})),
		Registerer: prometheus.NewRegistry(),
	}
}

func (w *world) server(t testing.TB) *Server {
	t.Helper()
	s, err := New(w.config())
	require.NoError(t, err)
	return s
}

const (
	inNamespace = "media"
	asObject    = "resize-scaler"
)

// ref is a request of ScaledObject media/resize-scaler with the metadata, key and value in turn.
func ref(metadata ...string) *pb.ScaledObjectRef {
	all := map[string]string{"scalerAddress": "scaler.pulsar:9443"}
	for i := 0; i < len(metadata); i += 2 {
		all[metadata[i]] = metadata[i+1]
	}
	return &pb.ScaledObjectRef{Namespace: inNamespace, Name: asObject, ScalerMetadata: all}
}

func scaledObject() types.NamespacedName {
	return types.NamespacedName{Namespace: inNamespace, Name: asObject}
}

func policyKey() types.NamespacedName {
	return types.NamespacedName{Namespace: inNamespace, Name: "resize"}
}

// topicSubject is what metadata topic: orders, subscription: resize are about.
func topicSubject() Subject {
	return Subject{Namespace: inNamespace, Topics: "persistent://public/default/orders", Subscription: "resize"}
}

// decidedPolicy is policy media/resize, whose status says so many replicas, measured at the time.
func decidedPolicy(replicas int32, at time.Time) *v1alpha1.AutoscalingPolicy {
	least := int32(0)
	return &v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: inNamespace, Name: "resize"},
		Spec:       v1alpha1.AutoscalingPolicySpec{ScalingSpec: v1alpha1.ScalingSpec{MinReplicas: &least, MaxReplicas: 100}},
		Status: v1alpha1.AutoscalingPolicyStatus{
			DesiredReplicas: &replicas,
			Signals:         &v1alpha1.Signals{MeasuredAt: metav1.NewTime(at)},
		},
	}
}

// heldPolicy is the policy while its backlog has been unknown since then.
func heldPolicy(p *v1alpha1.AutoscalingPolicy, since time.Time) *v1alpha1.AutoscalingPolicy {
	held := p.DeepCopy()
	held.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionBacklogKnown, Status: metav1.ConditionFalse, Reason: "Unreachable",
		Message:            errBrokerDown.Error(),
		LastTransitionTime: metav1.NewTime(since),
	}}
	return held
}

// reading of a pool that works: 250 ready messages, 100/s in and out, 4 consumers that are half busy.
func reading(at time.Time) backlog.Reading {
	return backlog.Reading{
		At: at, Type: backlog.Shared, Total: backlog.Known(250), Ready: backlog.Known(250), Unacked: backlog.Known(20),
		Undispatched: backlog.Known(
			230), PublishRate: backlog.Known(100), DeliveryRate: backlog.Known(100), ProcessRate: backlog.Known(100),
		Window: 10 * time.Second, LeastReady: backlog.Known(
			250), LeastUndispatched: backlog.Known(230), Consumers: backlog.Known(4),
		SteadyConsumers: true, Partitions: 1, Instances: backlog.InstancesReading{At: at, Busy: backlog.Known(0.5)},
	}
}
