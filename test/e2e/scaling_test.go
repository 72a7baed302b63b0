// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// addFunction adds a Function to the stage and deletes it after the test.
func addFunction(t *testing.T, config stage.FunctionConfig) *stage.Function {
	t.Helper()
	onStage(t)
	return scene.TestFunction(t, config)
}

// objective is that of all policies here.
const objective = 30 * time.Second

// newPolicy has 1 to 20 replicas, an objective of 30 s and a stabilization window of 10 s.
func newPolicy(name string) *v1alpha1.AutoscalingPolicy {
	p := stage.NewPolicy(name, 1, 20, objective)
	p.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: new(int32(10))}}
	return p
}

func addPolicy(t *testing.T, p *v1alpha1.AutoscalingPolicy) {
	t.Helper()
	require.NoError(t, scene.Client.Create(t.Context(), p))
}

func publish(t *testing.T, f *stage.Function, shape load.Shape) (stop func()) {
	t.Helper()
	return f.Load(t, shape)
}

// requireClean fails if the policy or the HPA reports a problem.
func requireClean(t *testing.T, f *stage.Function) {
	t.Helper()
	f.AwaitConditions(t, "Ready=True/Scaling")
	for _, wanted := range []string{"AbleToScale=True", "ScalingActive=True", "ScalingLimited=False"} {
		f.AwaitHPA(t, wanted) // a call that was late is made again
	}
}

// dial is a load that a test changes after a condition, however long that took.
type dial struct {
	t    *testing.T
	f    *stage.Function
	stop func()
}

func newDial(t *testing.T, f *stage.Function, perSecond int64) *dial {
	t.Helper()
	return &dial{t: t, f: f, stop: publish(t, f, load.Constant(float64(perSecond)))}
}

func (d *dial) turn(perSecond int64) {
	d.t.Helper()
	d.stop()
	d.stop = publish(d.t, d.f, load.Constant(float64(perSecond)))
}

// follow tests the whole loop: a load that steps up and down, and replicas that follow through the real HPA. The load
// changes only after the replicas have followed, however long a busy machine takes. How many steps they take, and how
// few messages are late, is tested where no machine can be slow: in policy (step_test.go) and bench/sim.
func follow(t *testing.T, config stage.FunctionConfig, low, high int64) *stage.Function {
	t.Helper()
	f := addFunction(t, config)
	p := newPolicy(config.Name)
	if config.Deployment {
		p = f.Consumes(p)
	}
	addPolicy(t, p)
	rate := newDial(t, f, low)
	capacity := float64(time.Second) / float64(config.ServiceTime)

	// At the calm rate one replica is enough, as low is a quarter of its capacity; a second one may help to drain what
	// waited until the first had started.
	f.AwaitConditions(t, "Ready=True/Scaling")
	f.AwaitReplicas(t, 1, 1)

	before, turned := f.Published(), time.Now()
	doneBefore := f.Score.Counts().Done
	rate.turn(high)
	enough := int64(float64(high)/capacity) + 1 // fewer never drain the backlog
	f.AwaitReplicas(t, enough, 20)
	f.Await(t, "the backlog to drain", func(context.Context) (bool, string, error) {
		done := f.Score.Counts().Done
		published := f.Published()
		return published-before > 10*high && published-done < high,
			fmt.Sprintf("%d published, %d done", published, done), nil
	})
	done := f.Score.Counts().Done
	shown := float64(done-doneBefore) / readySeconds(f, turned, time.Now())
	rate.turn(low)
	// Replicas do not go below the slow smoothed rate, which has a time constant of 90 s.
	f.AwaitReplicas(t, 1, 1)
	requireClean(t, f)

	p = scene.AwaitPolicy(t, p.Name, "redelivered messages of a scale-down", func(p *v1alpha1.AutoscalingPolicy) bool {
		last := p.Status.LastScaleDown
		return last != nil && last.RemovedReplicas > 0 && last.RedeliveredMessages != nil && p.Status.Capacity != nil &&
			p.Status.Decision != nil && p.Status.Decision.Equation != ""
	})
	tell(t, f, p)
	// A factor of two is a wrong unit or a wrong number of replicas; less may be the machine.
	learned := p.Status.Capacity.MessagesPerSecond.AsApproximateFloat64()
	require.Greater(t, learned, shown/2, "replicas have processed that many per second each, over the whole step")
	require.Less(t, learned, 2*capacity, "no replica can process as many")
	return f
}

// readySeconds is the time that replicas were ready within a period, summed up.
func readySeconds(f *stage.Function, from, to time.Time) (seconds float64) {
	timeline := scene.Mesh.Timeline(stage.Namespace, f.Name)
	for i, sample := range timeline {
		begin, end := sample.Time, to
		if i+1 < len(timeline) {
			end = timeline[i+1].Time
		}
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if end.After(begin) {
			seconds += float64(sample.Ready) * end.Sub(begin).Seconds()
		}
	}
	return seconds
}

// tell logs the timeline for go test -v.
func tell(t *testing.T, f *stage.Function, p *v1alpha1.AutoscalingPolicy) {
	t.Helper()
	timeline := scene.Mesh.Timeline(stage.Namespace, f.Name)
	for _, sample := range timeline {
		t.Logf("%5.1fs desired %d, started %d, ready %d", sample.Time.Sub(timeline[0].Time).Seconds(), sample.Desired,
			sample.Started, sample.Ready)
	}
	counts := f.Score.Counts()
	waits := f.Messages().Latencies
	t.Logf("published %d, done %d, late %d, wait p50 %s p99 %s, capacity %s/s from %d observations", f.Published(),
		counts.Done, counts.Late, waits.P50, waits.P99, &p.Status.Capacity.MessagesPerSecond,
		p.Status.Capacity.Observations)
}

func TestCoreScalingLightReplicasFollowTheLoad(t *testing.T) {
	t.Parallel()
	follow(t, stage.FunctionConfig{Name: "light", ServiceTime: 250 * time.Millisecond, StartDelay: 2 * time.Second}, 1, 13)
}

func TestScalingJavaInstancesFollowTheLoad(t *testing.T) {
	t.Parallel()
	const name, service = "java", 200 * time.Millisecond
	f := follow(t, stage.FunctionConfig{Name: name, Java: true, ServiceTime: service}, 1, 8)
	aggregated(t).awaitsTimed(t, mesh.KindFunction, name, service)
	requireFewRedelivered(t, f)
}

// requireFewRedelivered waits until one replica is left, and requires that each one that was removed gave back at most
// 1 % of Pulsar's receive queue of 1,000 messages.
func requireFewRedelivered(t *testing.T, f *stage.Function) {
	t.Helper()
	read := func(text, series string, value *float64) error {
		_, after, _ := strings.Cut(text, fmt.Sprintf("\npulsar_autoscaler_policy_%s{namespace=%q,policy=%q} ", series,
			stage.Namespace, f.Name))
		_, err := fmt.Sscan(after, value)
		return err
	}
	var consumers, redelivered float64
	f.Await(t, "one consumer", func(context.Context) (bool, string, error) {
		text := metricsOf(t, scene)
		err := errors.Join(read(text, "consumers", &consumers), read(text, "redelivered_messages_total", &redelivered))
		return err == nil && consumers == 1, fmt.Sprint(consumers), err
	})
	removed, desired := 0, 0
	for _, now := range scene.Mesh.Desired(stage.Namespace, f.Name, time.Time{}) {
		removed, desired = removed+max(0, desired-now), now
	}
	t.Logf("%g messages of %d removed replicas were redelivered", redelivered, removed)
	require.Positive(t, removed)
	require.LessOrEqual(t, redelivered, float64(10*removed))
}
