// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestPodsAreSeenAsTheyAre reads the pods of real StatefulSets with the permissions of deploy/rbac.
func TestPodsAreSeenAsTheyAre(t *testing.T) {
	t.Parallel()
	onStage(t)
	pods := watchedPods(t)

	const crashing = "crashing"
	create(t, mesh.PulsarConfig(stage.Namespace, crashing+"-pulsar", scene.Broker.AdminURL(), scene.Broker.ServiceURL()))
	made := time.Now().Truncate(time.Second) // as Kubernetes has it
	// that the stage has no replicas of, so every start fails
	create(t, mesh.Function(stage.Namespace, crashing, mesh.FunctionConfig{
		Topics: []string{crashing + "-in"}, PulsarConfig: crashing + "-pulsar", Replicas: 2,
	}))
	const rolling = "rolling"
	light := replica.NewLight(nil)
	t.Cleanup(light.Close) // after its Function is removed
	starts := &gated{Runner: light}
	addFunction(t,
		stage.FunctionConfig{Name: rolling, ServiceTime: 10 * time.Millisecond, Runner: starts, Replicas: 2})
	well := func(p policy.Pods) bool {
		p.Starts = nil
		return reflect.DeepEqual(policy.Pods{Ready: 2}, p)
	}
	awaitPods(t, pods, rolling, "all to do well", well)

	ill := awaitPods(t, pods, crashing, "both to crash", func(p policy.Pods) bool { return p.CrashLooping == 2 })
	require.Equal(t, int32(2), ill.Unready)
	require.WithinRange(t, ill.UnreadySince, made, time.Now())

	template := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`,
		made.Format(time.RFC3339))
	starts.gate.Lock()
	open := sync.OnceFunc(starts.gate.Unlock)
	t.Cleanup(open)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: rolling + "-function"}}
	require.NoError(t, scene.Client.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, []byte(template))))
	awaitPods(t, pods, rolling, "one to be replaced", func(p policy.Pods) bool {
		return p.Unready == 1 && p.CrashLooping == 0 && !p.UnreadySince.Before(made)
	})
	open()
	awaitPods(t, pods, rolling, "both to be replaced", well)
}

// gated starts replicas while the gate is not locked.
type gated struct {
	replica.Runner
	gate sync.RWMutex
}

// Start implements replica.Runner.
func (g *gated) Start(ctx context.Context, in replica.Instance) (replica.Replica, error) {
	g.gate.RLock()
	defer g.gate.RUnlock()
	return g.Runner.Start(ctx, in)
}

// watchedPods are the pods that the adapter would read, until the test ends.
func watchedPods(t *testing.T) *informer.Pods {
	t.Helper()
	kubeconfig, err := scene.Cluster.ServiceAccountKubeconfig(t.Context(), "pulsar-autoscaler", "adapter")
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	scheme, err := informer.Scheme()
	require.NoError(t, err)
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	pods, err := informer.NewPods(manager, nil)
	require.NoError(t, err)
	_, err = pods.Health(backlog.Object{Kind: "Function", Namespace: "default", Name: "none"})
	require.Error(t, err, "nothing is known before the first list")
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return pods.Start(ctx) })
	t.Cleanup(func() {
		stop()
		require.NoError(t, group.Wait())
	})
	return pods
}

func awaitPods(t *testing.T, pods *informer.Pods, function, what string,
	wanted func(policy.Pods) bool,
) (seen policy.Pods) {
	t.Helper()
	scene.Await(t, "pods of "+function+": "+what, func(context.Context) (bool, string, error) {
		var err error
		if seen, err = pods.Health(backlog.Object{
			Kind: "Function", Namespace: stage.Namespace, Name: function,
		}); err != nil {
			return false, "", err
		}
		return wanted(seen), fmt.Sprintf("%+v", seen), nil
	})
	return seen
}
