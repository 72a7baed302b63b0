// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/workerpods"
)

// podWorker is a broker with a function worker that runs functions as StatefulSets of the stage's cluster.
type podWorker struct{ *workerBroker }

// onPodWorker starts a broker, and runs the pods of its functions, for the test.
func onPodWorker(t *testing.T) *podWorker {
	t.Helper()
	onStage(t)
	root := workerpods.Start(t, scene.Cluster.RESTConfig())
	return &podWorker{onWorker(t, broker.Config{
		JVMFlags:   []string{"-Xmx512m"},
		Kubernetes: &broker.Kubernetes{Kubeconfig: scene.Cluster.Kubeconfig(), Namespace: stage.Namespace, Root: root},
	})}
}

// addFunction creates a function and waits for its StatefulSet. Both are deleted after the test, before the worker
// ends.
func (o *podWorker) addFunction(t *testing.T, config map[string]any) {
	t.Helper()
	o.create(t, function.KindFunction, config)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		meta := metav1.ObjectMeta{Namespace: stage.Namespace, Name: madeFor(config)}
		require.NoError(t, scene.Client.Delete(ctx, &appsv1.StatefulSet{ObjectMeta: meta}))
		require.NoError(t, scene.Client.Delete(ctx, &corev1.Service{ObjectMeta: meta}))
	})
}

func madeFor(config map[string]any) string {
	return fmt.Sprintf("pf-public-default-%s", config["name"])
}

// update changes a function as pulsar-admin does.
func (o *podWorker) update(t *testing.T, name string, change map[string]any) {
	t.Helper()
	config := maps.Clone(change)
	config["name"] = name
	component := broker.Component{Kind: string(function.KindFunction), Config: config}
	require.NoError(t, o.UpdateComponent(t.Context(), component))
}

// awaitSet waits until the StatefulSet has that many replicas in spec and status, and all consume, and returns it.
func (o *podWorker) awaitSet(t *testing.T, config map[string]any, topic string, replicas int32,
	not types.UID,
) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	name := madeFor(config)
	scene.Await(t, fmt.Sprintf("%d replicas of %s", replicas, name), func(ctx context.Context) (bool, string, error) {
		if err := scene.Client.Get(ctx, client.ObjectKey{Namespace: stage.Namespace, Name: name}, set); err != nil {
			return false, "", err
		}
		seen := fmt.Sprintf("%d of %d ready, %s", set.Status.ReadyReplicas, *set.Spec.Replicas,
			lastDecision(ctx, "pf-"+fmt.Sprint(config["name"])))
		return set.UID != not && *set.Spec.Replicas == replicas && set.Status.ReadyReplicas == replicas, seen, nil
	})
	o.consumed(t, topic, "public/default/"+fmt.Sprint(config["name"]), int(replicas))
	return set
}

// TestScalingStatefulSetsOfTheFunctionWorker has a backlog of several minutes at each step: the function takes a second
// for a message, and less later. Its first instance has prefetched the backlog before others join.
func TestScalingStatefulSetsOfTheFunctionWorker(t *testing.T) {
	t.Parallel()
	o := onPodWorker(t)
	const name, topic, messages = "crop", "persistent://public/default/crop-in", 1000
	require.NoError(t, o.CreateTopic(t.Context(), topic, 0))
	config := o.function(name, topic) // with Pulsar's receive queue of 1,000
	config["parallelism"], config["userConfig"] = 1, slower(config, "1000000")
	o.addFunction(t, config)
	set := o.awaitSet(t, config, topic, 1, "")

	p := newPolicy("pf-" + name)
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name}
	p.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: o.AdminURL()}
	p.Spec.MaxReplicas = 2                              // then 3: a start is told once there were two
	p.Spec.LatencyObjective.Duration = 10 * time.Second // shorter than a start with a sync of the HPA
	p.Spec.Strategies = []v1alpha1.Strategy{{
		Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 100},
	}}
	o.publish(t, topic, messages)
	create(t, p)
	began := time.Now()
	step := func(what string) { t.Logf("%5.1fs %s", time.Since(began).Seconds(), what) }

	o.awaitSet(t, config, topic, 2, "")
	awaitSeenConsumers(t, p.Name, 2) // a start that another change follows is not measured
	require.NoError(t, scene.Client.Patch(t.Context(), p,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"maxReplicas":3}}`))))
	set = o.awaitSet(t, config, topic, 3, "")
	step("3 replicas consume")
	requirePhases(t, p.Name)
	step("the phases of their starts are told")
	scene.AwaitConditions(t, p.Name, "Ready=True/Scaling")
	aggregated(t).awaitsTimed(t, "AutoscalingPolicy", p.Name, 500*time.Millisecond)
	aggregated(t).awaitsBacklog(t, "StatefulSet", set.Name)
	step("all 3 tell how busy they are, and the StatefulSet how much is ready")
	queue := advisedQueue(t, p.Name)
	step("2 of them have no messages")

	// At an update the worker recreates the StatefulSet with its own parallelism.
	before := learnedBy(t, p.Name)
	o.publish(t, topic, messages) // a slow machine needs minutes for each step
	o.update(t, name, map[string]any{
		"userConfig": slower(config, "400000"),
		"inputSpecs": map[string]any{topic: map[string]any{"receiverQueueSize": queue}},
	})
	set = o.awaitSet(t, config, topic, 3, set.UID)
	step("the autoscaler made them 3 again after an update of the function")
	scene.AwaitPolicy(t, p.Name, "all replicas to have messages", func(p *v1alpha1.AutoscalingPolicy) bool {
		return !starved(p)
	})
	step("all have messages")
	require.GreaterOrEqual(t, learnedBy(t, p.Name), before, "what was learned is kept")

	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	direct := p.DeepCopy()
	direct.Spec.Actuator = v1alpha1.ActuatorDirect
	require.NoError(t, scene.Client.Patch(t.Context(), direct, client.MergeFrom(p)))
	scene.AwaitPolicy(t, p.Name, "the controller itself to scale", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Actuator != nil && p.Status.Actuator.Type == v1alpha1.ActuatorDirect
	})
	o.publish(t, topic, messages)
	o.update(t, name, map[string]any{"userConfig": slower(config, "300000")})
	o.awaitSet(t, config, topic, 3, set.UID)
	step("the controller itself made them 3 again after another")

	o.demand(t, http.MethodPost,
		"/admin/v2/persistent/public/default/crop-in/subscription/public%252Fdefault%252Fcrop/skip_all")
	o.awaitSet(t, config, topic, 1, set.UID)
	step("1 is enough without a backlog")

	o.benchOfWorker(t, "StatefulSet/"+set.Name, topic)
	step("kubectl pap bench run has published into it")
}

// awaitSeenConsumers waits until the adapter has decided with a reading that has so many consumers.
func awaitSeenConsumers(t *testing.T, policy string, consumers int) {
	t.Helper()
	sample := fmt.Sprintf("pulsar_autoscaler_policy_consumers{namespace=%q,policy=%q} %d\n", stage.Namespace, policy,
		consumers)
	scene.Await(t, fmt.Sprintf("%d consumers in a reading of %s", consumers, policy),
		func(ctx context.Context) (bool, string, error) {
			text, err := scene.Ask(ctx, scene.Adapter, "/metrics")
			return bytes.Contains(text, []byte(sample)), "", err
		})
}

// requirePhases waits for the phases of a start. The node has the images, and the package is a file to copy.
func requirePhases(t *testing.T, policy string) {
	t.Helper()
	start := scene.AwaitPolicy(t, policy, "the phases of a start", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Start != nil && p.Status.Start.PackageSeconds != nil
	}).Status.Start
	t.Logf("a start: %+v, package %d", *start, *start.PackageSeconds)
	require.Zero(t, start.InitContainersSeconds)
	require.Positive(t, start.ProgramSeconds)
	require.InDelta(t, start.TotalSeconds,
		start.SchedulingSeconds+start.ContainersSeconds+*start.PackageSeconds+start.ProgramSeconds, 2, "each is rounded")
}

// starved reports whether a policy says that replicas have no messages.
func starved(p *v1alpha1.AutoscalingPolicy) bool {
	met := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionObjectiveMet)
	return met != nil && met.Reason == v1alpha1.ReasonReplicasStarved
}

// advisedQueue waits until a policy says that 2 of 3 replicas have no messages, and returns the receiverQueueSize that
// it advises: 2 s of the work of a replica that takes a second for a message.
func advisedQueue(t *testing.T, policy string) (queue int) {
	t.Helper()
	var without, replicas, holding, held int
	const told = "messages wait longer than the latency objective: %d of %d replicas have no messages, since %d hold %d in " +
		"their receive queues: set inputSpecs.<topic>.receiverQueueSize of the function to %d, which is 2 s of a replica's work"
	scene.AwaitPolicy(t, policy, "2 of 3 replicas have no messages", func(p *v1alpha1.AutoscalingPolicy) bool {
		if !starved(p) {
			return false
		}
		said := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionObjectiveMet).Message
		_, err := fmt.Sscanf(said, told, &without, &replicas, &holding, &held, &queue)
		require.NoError(t, err, said)
		return without == 2 && replicas == 3
	})
	t.Log(without, replicas, holding, held, queue)
	require.Equal(t, 1, holding)
	require.Greater(t, held, 500, "of 1000 that it received within the last minutes")
	require.InDelta(t, 2, queue, 1, "a busy machine may take longer for a message")
	return queue
}

// lastDecision is the decision in the policy's status.
func lastDecision(ctx context.Context, name string) string {
	p, err := scene.Policy(ctx, name)
	if err != nil || p.Status.Decision == nil {
		return fmt.Sprint("no decision ", err)
	}
	return fmt.Sprintf("decided %s, hold %+v, signals %+v", p.Status.Decision.Equation, p.Status.Decision.Hold,
		p.Status.Signals)
}

// slower returns the function's user configuration with another service time.
func slower(config map[string]any, micros string) map[string]any {
	changed := maps.Clone(config["userConfig"].(map[string]any))
	changed["serviceMicros"] = micros
	return changed
}

// learnedBy is the number of observations of the policy's capacity.
func learnedBy(t *testing.T, name string) int32 {
	t.Helper()
	p, err := scene.Policy(t.Context(), name)
	require.NoError(t, err)
	if p.Status.Capacity == nil {
		return 0
	}
	return p.Status.Capacity.Observations
}
