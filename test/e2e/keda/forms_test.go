// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// never is a pollingInterval that no test waits for: KEDA looks once when the ScaledObject is new, and what wakes it
// after that was pushed.
const never = 3600

// perReplica is how many messages one replica is for in these tests, and burst asks for 4 of them.
const (
	perReplica = 20
	burst      = 4 * perReplica
	// least replicas for it.
	leastForBurst = 3
)

// TestZeroToManyAndBack has a Function of 2 messages/s a replica, whose replicas take 5 s to start.
func TestZeroToManyAndBack(t *testing.T) {
	onStage(t)
	topic := func(_ *testing.T, f *stage.Function) map[string]string {
		return map[string]string{
			"topic": f.Topic, "subscription": "public/default/" + f.Name, "messagesPerReplica": fmt.Sprint(perReplica),
		}
	}
	target := func(_ *testing.T, f *stage.Function) map[string]string {
		return map[string]string{"target": "Function/" + f.Name, "messagesPerReplica": fmt.Sprint(perReplica)}
	}
	decided := func(t *testing.T, f *stage.Function) map[string]string {
		p := newPolicy(f.Name, v1alpha1.Strategy{
			Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: perReplica},
		})
		p.Spec.Mode = v1alpha1.ModeRecommend
		addPolicy(t, p)
		return map[string]string{"policy": f.Name}
	}
	for name, c := range map[string]struct {
		pull     bool
		security stage.Security
		// metadata of the trigger.
		metadata func(t *testing.T, f *stage.Function) map[string]string
	}{
		"push-policy": {metadata: decided},
		"pull-policy": {metadata: decided, pull: true},
		"push-target": {metadata: target, security: stage.MutualTLS},
		"pull-target": {metadata: target, pull: true, security: stage.MutualTLS},
		"push-topic":  {metadata: topic},
		"pull-topic":  {metadata: topic, pull: true, security: stage.TLS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := addFunction(t,
				stage.FunctionConfig{Name: name, ServiceTime: 500 * time.Millisecond, StartDelay: 5 * time.Second})
			config := stage.ScaledObjectConfig{
				Name: name, Pull: c.pull, Metadata: c.metadata(t, f),
				Scaler: scalerFor(t, name, c.security),
			}
			o := addAsleep(t, config, func() { awaitReplicas(t, f, 0, 0) }) // of the one that it had
			upAndDown(t, f, o)
		})
	}
}

// scalerFor is one of its own where it is talked to with TLS, which ends with the test.
func scalerFor(t *testing.T, name string, security stage.Security) *stage.Scaler {
	t.Helper()
	if security == stage.Plain {
		return nil
	}
	s, err := scene.AddScaler(context.WithoutCancel(t.Context()), "scaler-"+name, stage.ScalerConfig{Security: security})
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	return s
}

// addAsleep adds a ScaledObject whose target has no replicas, where it pushes one that is not looked at again: nothing
// but a push wakes the target. KEDA itself takes the replicas that there are, and asleep waits for that.
//
// That is done by another ScaledObject of the same name, for one that is changed is looked at only once more: KEDA's
// old loop closes the scalers of the new one whenever it comes to it. A look at them then counts as nothing to do, even
// after a push, and a connection that no other trigger uses is closed with them until the next look, and so are its
// streams.
func addAsleep(t *testing.T, config stage.ScaledObjectConfig, asleep func()) *stage.ScaledObject {
	t.Helper()
	if config.Pull {
		o := addScaledObject(t, config)
		asleep()
		return o
	}
	first := config
	first.Pull = true
	o := addScaledObject(t, first)
	asleep()
	hpa, err := o.Autoscaler(t.Context())
	require.NoError(t, err)
	require.NotNil(t, hpa)
	require.NoError(t, o.Remove(t.Context()))
	// Were it still there, KEDA would begin anew once it goes.
	await(t, "KEDA's HorizontalPodAutoscaler to be gone", func(ctx context.Context) (bool, string, error) {
		err := scene.Client.Get(ctx, client.ObjectKeyFromObject(hpa), hpa)
		return apierrors.IsNotFound(err), fmt.Sprint(err), client.IgnoreNotFound(err)
	})
	config.PollingSeconds = never
	o = addScaledObject(t, config)
	awaitLook(t, o)
	return o
}

// awaitLook waits until KEDA has looked at the trigger and has found nothing to do. It says so in two places, for its
// controller may write conditions as it read them before that look.
func awaitLook(t *testing.T, o *stage.ScaledObject) {
	t.Helper()
	await(t, "KEDA to look at "+o.Name, func(ctx context.Context) (bool, string, error) {
		status, err := o.Status(ctx)
		looked := len(status.TriggersActivity) > 0 || meta.IsStatusConditionFalse(status.Conditions, "Active")
		return looked, fmt.Sprintf("%+v", status), err
	})
}

// repoll changes the pollingInterval, whereupon KEDA begins anew: it closes its streams, opens others, and looks once.
func repoll(t *testing.T, o *stage.ScaledObject, seconds int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"pollingInterval":%d}}`, seconds)
	require.NoError(t, o.Patch(t.Context(), client.RawPatch(types.MergePatchType, patch)))
}

// upAndDown publishes a burst for a Function without replicas, and sees it done.
func upAndDown(t *testing.T, f *stage.Function, o *stage.ScaledObject) {
	t.Helper()
	since := time.Now()
	require.NoError(t, f.PublishBurst(t.Context(), burst))
	stored := time.Now()
	awaitReplicas(t, f, 1, 10)
	first := time.Now()
	awaitReplicas(t, f, leastForBurst, 10)
	t.Logf("%s after the burst was stored the first replica was asked for, after %s %d of them",
		first.Sub(stored).Round(time.Millisecond), time.Since(stored).Round(time.Millisecond), leastForBurst)
	require.NoError(t, f.AwaitAllDone(t.Context()))
	desired := fromZero(t, f.Name, since)
	// Where it was never, it would stay up. A changed ScaledObject alone may have KEDA write 0, and 1 again: its old loop
	// closes the cache of the new one, which takes the error for nothing to do, and its last look is longer ago than the
	// cooldown.
	repoll(t, o, 2)
	awaitReplicas(t, f, 0, 0)
	tellTimeline(t, f.Name, since)
	require.NotContains(t, desired[1:], 0, "it went back while there was work: %v", desired)
}
