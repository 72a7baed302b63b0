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

// never is a pollingInterval longer than any test: KEDA polls a new ScaledObject once, and later wakes come from
// pushes.
const never = 3600

// perReplica is the number of messages for one replica in these tests, and burst needs 4 replicas.
const (
	perReplica = 20
	burst      = 4 * perReplica
	// least replicas for it.
	leastForBurst = 3
)

// TestZeroToManyAndBack has a Function of 2 messages/s per replica. A replica takes 5 s to start. Each form of a
// trigger is pushed here, and one is polled as well; provider/keda has all of them without KEDA.
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
		"push-target": {metadata: target, security: stage.MutualTLS},
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
			o := addAsleep(t, config, func() { f.AwaitReplicas(t, 0, 0) }) // of the one that it had
			upAndDown(t, f, o)
		})
	}
}

// scalerFor returns a scaler for the test if it uses TLS, and nil for the stage's otherwise.
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

// addAsleep adds a ScaledObject for a target without replicas. With push, KEDA does not poll it again: only a push
// wakes the target. KEDA itself removes existing replicas, and asleep waits for that.
//
// Another ScaledObject of the same name does it, because KEDA polls a changed one only once more: KEDA's old loop
// closes the scalers of the new one. A poll of them then counts as idle, even after a push, and closes a connection
// that no other trigger uses, with its streams, until the next poll.
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
	// If it still existed, KEDA would restart its loop at its deletion.
	scene.Await(t, "KEDA's HorizontalPodAutoscaler to be gone", func(ctx context.Context) (bool, string, error) {
		err := scene.Client.Get(ctx, client.ObjectKeyFromObject(hpa), hpa)
		return apierrors.IsNotFound(err), fmt.Sprint(err), client.IgnoreNotFound(err)
	})
	config.PollingSeconds = never
	o = addScaledObject(t, config)
	awaitLook(t, o)
	return o
}

// awaitLook waits until KEDA has polled the trigger and found it idle, in two places: its controller may write
// conditions that it read before that poll.
func awaitLook(t *testing.T, o *stage.ScaledObject) {
	t.Helper()
	scene.Await(t, "KEDA to look at "+o.Name, func(ctx context.Context) (bool, string, error) {
		status, err := o.Status(ctx)
		looked := len(status.TriggersActivity) > 0 || meta.IsStatusConditionFalse(status.Conditions, "Active")
		return looked, fmt.Sprintf("%+v", status), err
	})
}

// repoll changes the pollingInterval, after which KEDA restarts: it closes its streams, opens others, and polls once.
func repoll(t *testing.T, o *stage.ScaledObject, seconds int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"pollingInterval":%d}}`, seconds)
	require.NoError(t, o.Patch(t.Context(), client.RawPatch(types.MergePatchType, patch)))
}

// upAndDown publishes a burst for a Function without replicas, and waits until it is processed.
func upAndDown(t *testing.T, f *stage.Function, o *stage.ScaledObject) {
	t.Helper()
	since := time.Now()
	require.NoError(t, f.PublishBurst(t.Context(), burst))
	stored := time.Now()
	f.AwaitReplicas(t, 1, 10)
	first := time.Now()
	f.AwaitReplicas(t, leastForBurst, 10)
	t.Logf("%s after the burst was stored the first replica was asked for, after %s %d of them",
		first.Sub(stored).Round(time.Millisecond), time.Since(stored).Round(time.Millisecond), leastForBurst)
	require.NoError(t, f.AwaitAllDone(t.Context()))
	desired := fromZero(t, f.Name, since)
	// With never it would not scale down. A changed ScaledObject may make KEDA write 0, and 1 again: its old loop closes
	// the cache of the new one, which takes the error for idleness after a cooldown without polls.
	repoll(t, o, 2)
	f.AwaitReplicas(t, 0, 0)
	tellTimeline(t, f.Name, since)
	require.NotContains(t, desired[1:], 0, "it went back while there was work: %v", desired)
}
