// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// loaded is a Function with a replica for each 20/s: maxLoaded, also where a busy machine publishes some messages late,
// and then all at once.
type loaded struct {
	*stage.Function
	object *stage.ScaledObject
	stop   func()
}

const (
	maxLoaded, loadedRate = 3, 56
	// cooldown is the idle time after which KEDA removes the last replica. Holds last longer here.
	cooldown = 6 * time.Second
	// silence is how long a request waits for a scaler that hangs.
	silence = 4 * time.Second
)

// TestFaults makes one part after another fail under load. It runs before the parallel tests, because it breaks shared
// parts. One Function follows a policy, by push, the other the rate on its topic, by pull.
func TestFaults(t *testing.T) {
	onStage(t)
	decided, measured := underLoad(t, "decided"), underLoad(t, "measured")
	rate := v1alpha1.RatePerReplica{MessagesPerSecond: resource.MustParse("20")}
	p := newPolicy("decided", v1alpha1.Strategy{Type: v1alpha1.StrategyRatePerReplica, RatePerReplica: &rate})
	p.Spec.Mode, p.Spec.MaxReplicas = v1alpha1.ModeRecommend, maxLoaded
	addPolicy(t, p)
	decided.object = addScaledObject(t,
		stage.ScaledObjectConfig{
			Name: "decided", CooldownSeconds: int64(cooldown.Seconds()), Most: maxLoaded,
			Metadata: map[string]string{"policy": "decided"},
		})
	measured.object = addScaledObject(t,
		stage.ScaledObjectConfig{
			Name: "measured", CooldownSeconds: int64(cooldown.Seconds()), Most: maxLoaded, Pull: true,
			Metadata: map[string]string{
				"topic": measured.Topic, "subscription": "public/default/measured", "messagesPerSecondPerReplica": "20",
			},
		})
	both := []*loaded{decided, measured}
	for _, f := range both {
		f.AwaitReplicas(t, maxLoaded, maxLoaded)
	}
	awaitHealthy(t, both, 0)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, both []*loaded)
	}{
		{"a broker that hangs", aBrokerThatHangs},
		{"a decision maker that is gone", noDecisionMaker},
		{"a scaler that hangs", aScalerThatHangs},
		{"a scaler that crashes", aScalerThatCrashes},
		{"a scaler that starts while the broker hangs", aScalerThatStartsDuringAnOutage},
		{"an operator of KEDA that crashes", anOperatorThatCrashes},
		{"a metrics server of KEDA that crashes", aMetricsServerThatCrashes},
		{"a policy that is deleted", aPolicyThatIsDeleted},
	} {
		t.Run(c.name, func(t *testing.T) {
			since := time.Now()
			c.run(t, both)
			for _, f := range both {
				require.Equal(t, []int{maxLoaded}, scene.Mesh.Desired(stage.Namespace, f.Name, since), f.Name)
			}
		})
	}
	for _, f := range both {
		f.stop()
		f.AwaitReplicas(t, 0, 0)
	}
}

func underLoad(t *testing.T, name string) *loaded {
	t.Helper()
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 20 * time.Millisecond})
	return &loaded{Function: f, stop: f.Load(t, load.Constant(loadedRate))}
}

// awaitHealthy waits until KEDA has seen both triggers active for that long from now on, without errors.
func awaitHealthy(t *testing.T, both []*loaded, after time.Duration) {
	t.Helper()
	since := time.Now().Add(after)
	for _, f := range both {
		awaitActiveAgain(t, f.object, since)
		awaitCondition(t, f.object, "Ready", metav1.ConditionTrue, "ScaledObjectReady")
		awaitCondition(t, f.object, "HPAActive", metav1.ConditionTrue, "HPAActive")
	}
}

// aBrokerThatHangs: KEDA gets the last values and sees no error.
func aBrokerThatHangs(t *testing.T, both []*loaded) {
	require.NoError(t, scene.Broker.Pause())
	t.Cleanup(func() { _ = scene.Broker.Resume() }) // if the test ends while it hangs
	both[0].AwaitConditions(t, "BacklogKnown=False/Stale")
	awaitHealthy(t, both, cooldown+time.Second)
	require.NoError(t, scene.Broker.Resume())
	both[0].AwaitConditions(t, "BacklogKnown=True/Measured")
	for _, f := range both {
		f.AwaitDone(t, 200)
	}
}

// noDecisionMaker: KEDA sees no error either when no adapter decides.
func noDecisionMaker(t *testing.T, both []*loaded) {
	scene.Adapter.Kill()
	awaitHealthy(t, both, cooldown+time.Second)
	require.NoError(t, scene.Adapter.Start(t.Context(), scene))
	scene.Await(t, "the adapter to decide", func(ctx context.Context) (bool, string, error) {
		metrics, err := scene.Ask(ctx, scene.Adapter, "/metrics")
		return strings.Contains(string(metrics), "policy_reconciles_total{"), "it does not lead", err
	})
	awaitHealthy(t, both, 0)
}

// aScalerThatHangs: KEDA has no deadline, so a metric is served when the scaler continues, or fails after the API
// server's 60 s.
func aScalerThatHangs(t *testing.T, both []*loaded) {
	require.NoError(t, scene.Scaler.Pause())
	t.Cleanup(func() { _ = scene.Scaler.Resume() })
	require.ErrorIs(t, metric(t.Context(), t, both[0].object), context.DeadlineExceeded)
	require.NoError(t, scene.Scaler.Resume())
	awaitHealthy(t, both, 0)
}

// metric requests a metric as a HorizontalPodAutoscaler does, and returns the error.
func metric(ctx context.Context, t *testing.T, o *stage.ScaledObject) error {
	t.Helper()
	status, err := o.Status(ctx)
	require.NoError(t, err)
	require.Len(t, status.ExternalMetricNames, 1)
	clientset, err := kubernetes.NewForConfig(scene.Cluster.RESTConfig())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	return clientset.RESTClient().Get().
		AbsPath("/apis/external.metrics.k8s.io/v1beta1/namespaces", stage.Namespace, status.ExternalMetricNames[0]).
		Param("labelSelector", "scaledobject.keda.sh/name="+o.Name).Do(ctx).Error()
}

// aScalerThatCrashes loses its readings. KEDA gets errors until it restarts, and then the push stream works again.
func aScalerThatCrashes(t *testing.T, both []*loaded) {
	pushed := sleeping(t, "pushed")
	scene.Scaler.Kill()
	for _, f := range both {
		awaitCondition(t, f.object, "HPAActive", metav1.ConditionFalse, "FailedGetExternalMetric")
	}
	require.NoError(t, scene.Scaler.Restart(t.Context()))
	awaitHealthy(t, both, 0)
	require.NoError(t, pushed.PublishBurst(t.Context(), burst))
	pushed.AwaitReplicas(t, 1, 10)
}

// aScalerThatStartsDuringAnOutage knows only the running replicas of a topic.
func aScalerThatStartsDuringAnOutage(t *testing.T, both []*loaded) {
	require.NoError(t, scene.Broker.Pause())
	t.Cleanup(func() { _ = scene.Broker.Resume() })
	require.NoError(t, scene.Scaler.Restart(t.Context()))
	awaitHealthy(t, both, cooldown+time.Second)
	require.NoError(t, scene.Broker.Resume())
	for _, f := range both {
		f.AwaitDone(t, 200)
	}
}

// sleeping is a Function without replicas that only a push wakes.
func sleeping(t *testing.T, name string) *stage.Function {
	t.Helper()
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond})
	addAsleep(t, stage.ScaledObjectConfig{Name: name, Metadata: map[string]string{
		"target": "Function/" + name, "messagesPerReplica": fmt.Sprint(perReplica),
	}}, func() { f.AwaitReplicas(t, 0, 0) })
	return f
}

func anOperatorThatCrashes(t *testing.T, both []*loaded) {
	scene.KEDA.Operator.Kill()
	require.Error(t, metric(t.Context(), t, both[0].object), "nobody answers in its place")
	require.NoError(t, scene.KEDA.Operator.Restart(t.Context()))
	awaitHealthy(t, both, 0)
}

func aMetricsServerThatCrashes(t *testing.T, both []*loaded) {
	scene.KEDA.MetricsServer.Kill()
	for _, f := range both {
		awaitCondition(t, f.object, "HPAActive", metav1.ConditionFalse, "FailedGetExternalMetric")
	}
	require.NoError(t, scene.KEDA.MetricsServer.Restart(t.Context()))
	awaitHealthy(t, both, 0)
}

// aPolicyThatIsDeleted: the last decision is held for --hold-for.
func aPolicyThatIsDeleted(t *testing.T, both []*loaded) {
	p, err := both[0].Policy(t.Context())
	require.NoError(t, err)
	require.NoError(t, scene.Client.Delete(t.Context(), p))
	awaitHealthy(t, both, 0)
	again := p.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}
	again.Status = v1alpha1.AutoscalingPolicyStatus{}
	require.NoError(t, scene.Client.Create(t.Context(), again))
	both[0].AwaitConditions(t, "BacklogKnown=True/Measured")
	awaitHealthy(t, both, 0)
}
