// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

var errBrokerDown = errors.New("unreachable: the broker does not answer")

// environment is the input of a server; it may change while the server runs.
type environment struct {
	mu       sync.Mutex
	policies map[types.NamespacedName]*v1alpha1.AutoscalingPolicy
	readings map[Subject]backlog.Reading
	replicas map[types.NamespacedName]int32
	// unread is why nothing can be read; nil if it can.
	unread error
	// dead is why no replica of the adapter decides; nil if one does.
	dead error
	// hang, when set, blocks readers of signals until it is closed.
	hang chan struct{}
	now  time.Time
	log  records
}

func newEnvironment() *environment {
	return &environment{
		policies: map[types.NamespacedName]*v1alpha1.AutoscalingPolicy{}, readings: map[Subject]backlog.Reading{},
		replicas: map[types.NamespacedName]int32{}, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
	}
}

func (env *environment) change(how func()) {
	env.mu.Lock()
	defer env.mu.Unlock()
	how()
}

func (env *environment) pass(d time.Duration) { env.change(func() { env.now = env.now.Add(d) }) }

func (env *environment) Now() time.Time {
	env.mu.Lock()
	defer env.mu.Unlock()
	return env.now
}

func (env *environment) Policy(key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error) {
	env.mu.Lock()
	defer env.mu.Unlock()
	if p, found := env.policies[key]; found {
		return p, nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.GroupResource(), key.Name)
}

func (env *environment) Current(*v1alpha1.AutoscalingPolicy, time.Time) error {
	env.mu.Lock()
	defer env.mu.Unlock()
	return env.dead
}

func (env *environment) Read(subject Subject, _ time.Time) (backlog.Reading, error) {
	env.mu.Lock()
	hang := env.hang
	reading, found := env.readings[subject]
	err := env.unread
	env.mu.Unlock()
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

func (env *environment) Replicas(key types.NamespacedName) (int32, error) {
	env.mu.Lock()
	defer env.mu.Unlock()
	if r, found := env.replicas[key]; found {
		return r, nil
	}
	return 0, errors.New("no such ScaledObject")
}

// records are the logged lines.
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

// config of a server in this environment.
func (env *environment) config() Config {
	return Config{
		Policies: env, DecisionMaker: env, Signals: env, ScaledObjects: env, Now: env.Now, HoldFor: time.Hour,
		MaxStreamsPerNamespace: DefaultMaxStreamsPerNamespace,
		Logger:                 slog.New(slog.NewTextHandler(&env.log, &slog.HandlerOptions{})),
		Registerer:             prometheus.NewRegistry(),
	}
}

func (env *environment) server() *Server { return New(env.config()) }

const (
	inNamespace = "media"
	asObject    = "resize-scaler"
)

// ref is a request of ScaledObject media/resize-scaler with the metadata as alternating keys and values.
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

// topicSubject is the subject of metadata topic: orders, subscription: resize.
func topicSubject() Subject {
	return Subject{Namespace: inNamespace, Topics: "persistent://public/default/orders", Subscription: "resize"}
}

// decidedPolicy is policy media/resize with the given desired replicas, measured at the given time.
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

// heldPolicy is the policy with an unknown backlog since the given time.
func heldPolicy(p *v1alpha1.AutoscalingPolicy, since time.Time) *v1alpha1.AutoscalingPolicy {
	held := p.DeepCopy()
	held.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionBacklogKnown, Status: metav1.ConditionFalse, Reason: "Unreachable",
		Message:            errBrokerDown.Error(),
		LastTransitionTime: metav1.NewTime(since),
	}}
	return held
}

// reading of a busy pool: 250 ready messages, 100/s in and out, 4 consumers that are half busy.
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
