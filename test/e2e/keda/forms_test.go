// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// never is a pollingInterval that no test waits for: KEDA looks once when the ScaledObject is new, and what wakes it after that
// was pushed.
const never = 3600

// perReplica is how many messages one replica is for in these tests, and burst asks for 4 of them.
const (
	perReplica = 20
	burst      = 4 * perReplica
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
	learning := func(_ *testing.T, f *stage.Function) map[string]string {
		return map[string]string{"target": "Function/" + f.Name, "latencyObjective": "5s"}
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
		// least replicas for the burst.
		least int64
	}{
		"push-policy":   {metadata: decided, least: 3},
		"pull-policy":   {metadata: decided, least: 3, pull: true},
		"push-target":   {metadata: target, least: 3, security: stage.MutualTLS},
		"pull-target":   {metadata: target, least: 3, pull: true, security: stage.MutualTLS},
		"push-capacity": {metadata: learning, least: 2},
		"pull-capacity": {metadata: learning, least: 2, pull: true},
		"push-topic":    {metadata: topic, least: 3},
		"pull-topic":    {metadata: topic, least: 3, pull: true, security: stage.TLS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 500 * time.Millisecond, StartDelay: 5 * time.Second})
			config := stage.ScaledObjectConfig{Name: name, Pull: c.pull, Metadata: c.metadata(t, f), Scaler: scalerFor(t, name, c.security)}
			o := addScaledObject(t, config)
			awaitReplicas(t, f, 0, 0) // of the one that it had
			if !c.pull {
				repoll(t, o, never)
			}
			upAndDown(t, f, o, c.least)
		})
	}
}

// scalerFor is one of its own where it is talked to with TLS, which ends with the test.
func scalerFor(t *testing.T, name string, security stage.Security) *stage.Scaler {
	t.Helper()
	if security == stage.Plain {
		return nil
	}
	s, err := scene.AddScaler(lifetime, "scaler-"+name, stage.ScalerConfig{Security: security})
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	return s
}

// repoll changes the pollingInterval, whereupon KEDA begins anew: it closes its streams, opens others, and looks once.
func repoll(t *testing.T, o *stage.ScaledObject, seconds int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"pollingInterval":%d}}`, seconds)
	require.NoError(t, o.Patch(t.Context(), client.RawPatch(types.MergePatchType, patch)))
}

// upAndDown publishes a burst for a Function without replicas, and sees it done.
func upAndDown(t *testing.T, f *stage.Function, o *stage.ScaledObject, least int64) {
	t.Helper()
	since := time.Now()
	publishBurst(t, f, burst)
	stored := time.Now()
	awaitReplicas(t, f, 1, 10)
	first := time.Now()
	awaitReplicas(t, f, least, 10)
	t.Logf("%s after the burst was stored the first replica was asked for, after %s %d of them",
		first.Sub(stored).Round(time.Millisecond), time.Since(stored).Round(time.Millisecond), least)
	awaitAllDone(t, f)
	desired := fromZero(t, f.Name, since)
	// Where it was never, it would stay up. A changed ScaledObject alone may have KEDA write 0, and 1 again: its old loop closes the cache
	// of the new one, which takes the error for nothing to do, and its last look is longer ago than the cooldown.
	repoll(t, o, 2)
	awaitReplicas(t, f, 0, 0)
	tellTimeline(t, f.Name, since)
	require.NotContains(t, desired[1:], 0, "it went back while there was work: %v", desired)
}
