// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/faults"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// mode is a fault with its tolerated effects.
type mode struct {
	fault faults.Fault
	// lasts is false for one faulty response.
	lasts bool
	// partitions of the topic; 0 is a topic without partitions.
	partitions int
	// topics are how many inputs the Function has; 0 is one.
	topics int
	// text is in a condition while the backlog is unknown by the fault; empty if it stays known.
	text string
	// core modes are those that show most, and alone modes run without others beside them.
	core, alone bool
}

const (
	// apart is the largest difference to the replicas that the twin had, which vary by one.
	apart = 2
	// memory is the limit for the adapter in all modes together.
	memory = 200 << 20
)

// subject is a Function that is read through a proxy.
type subject struct {
	*scene
	*stage.Function
	proxy *faults.Proxy
	// begun is when its load began.
	begun time.Time
}

// run runs one mode.
func (m mode) run(t *testing.T, name string) {
	t.Helper()
	s := newSubject(t, name, m)
	s.Await(t, "both to be settled", s.settled)
	since, end := time.Now(), s.observe(t)
	answers := 1
	if m.lasts {
		answers = faults.Always
	}
	s.proxy.Falsify(m.fault, answers)
	s.Await(t, "a wrong answer", func(context.Context) (bool, string, error) {
		return s.proxy.Told() > 0, fmt.Sprint(s.proxy.Told()), nil
	})
	if m.text != "" {
		s.AwaitPolicy(t, "an unknown backlog, and a condition to say "+m.text, func(p *v1alpha1.AutoscalingPolicy) bool {
			return meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionBacklogKnown) &&
				strings.Contains(stage.Conditions(p), m.text)
		})
		s.awaitDecision(t, stabilization+time.Second) // Pulsar is asked again later and later
	} else if m.lasts {
		s.awaitDecision(t, shows)
	}
	s.proxy.Tell()
	s.AwaitConditions(t, "BacklogKnown=True")
	s.awaitDecision(t, shows)
	s.AwaitConditions(t, "Ready=True", "BacklogKnown=True")
	s.requireLikeTwin(t, since, end())
}

func newSubject(t *testing.T, name string, m mode) *subject {
	t.Helper()
	s := &subject{scene: theScene.Need(t)}
	var err error
	s.proxy, err = faults.NewProxy(s.Broker.AdminURL())
	require.NoError(t, err)
	server := httptest.NewServer(s.proxy)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	config := function(name)
	config.AdminURL, config.Partitions = server.URL, m.partitions
	config.Edit = s.moreTopics(t, name, m.topics)
	ctx, cancel := context.WithCancel(t.Context())
	s.Function, err = s.AddFunction(ctx, config)
	require.NoError(t, err)
	var publishing errgroup.Group
	s.begun = time.Now()
	publishing.Go(func() error { return s.Publish(ctx, load.Constant(arriving)) })
	t.Cleanup(func() {
		cancel()
		require.NoError(t, publishing.Wait())
		require.NoError(t, s.Remove(context.WithoutCancel(t.Context())))
	})
	// A pause that the adapter has seen would make the counters of a cache plausible.
	s.Await(t, "messages before its policy", func(context.Context) (bool, string, error) {
		processed := s.Score.Counts().Done
		return processed > 0, fmt.Sprint(processed), nil
	})
	require.NoError(t, s.Client.Create(ctx, policy(name)))
	return s
}

// moreTopics gives a Function more inputs, which stay empty.
func (s *subject) moreTopics(t *testing.T, name string, count int) func(*unstructured.Unstructured) {
	t.Helper()
	topics := []any{broker.TopicName(name + "-in")}
	for i := 1; i < count; i++ {
		topic := broker.TopicName(name + "-more-" + strconv.Itoa(i))
		require.NoError(t, s.Broker.CreateTopic(t.Context(), topic, 0))
		topics = append(topics, topic)
	}
	return func(function *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedSlice(function.Object, topics, "spec", "input", "topics"))
	}
}

// settled reports whether both have learned their capacity, and have the same number of replicas.
func (s *subject) settled(ctx context.Context) (bool, string, error) {
	var spec [2]int64
	for i, f := range []*stage.Function{s.twin, s.Function} {
		p, err := f.Policy(ctx)
		if err != nil {
			return false, "", err
		}
		replicas, err := f.Replicas(ctx)
		if err != nil {
			return false, "", err
		}
		spec[i] = replicas.Spec
		if p.Status.Capacity == nil || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) ||
			p.Status.DesiredReplicas == nil || int64(*p.Status.DesiredReplicas) != replicas.Spec {
			return false, fmt.Sprintf("%s: %+v", f.Name, p.Status.Conditions), nil
		}
	}
	return distance(spec[0], spec[1]) < apart, fmt.Sprint(spec, " replicas"), nil
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// awaitDecision waits until the adapter has decided for the Function that long after now: what it does about an answer
// shows until then, on a machine that stalls too.
func (s *subject) awaitDecision(t *testing.T, later time.Duration) {
	t.Helper()
	at := time.Now().Add(later)
	age := fmt.Sprintf("pulsar_autoscaler_policy_decision_age_seconds{namespace=%q,policy=%q}", stage.Namespace, s.Name)
	s.Await(t, fmt.Sprint("a decision ", later, " later"), func(ctx context.Context) (bool, string, error) {
		asked := time.Now()
		if asked.Before(at) {
			return false, "not yet", nil
		}
		seconds, err := s.metric(ctx, age)
		decided := asked.Add(-time.Duration(seconds * float64(time.Second)))
		return !decided.Before(at), decided.String(), err
	})
}

// most is what was observed at most: messages that had arrived and were not processed, and bytes of the adapter.
type most struct{ pending, memory float64 }

// observe samples until end is called, or the test ends.
func (s *subject) observe(t *testing.T) (end func() most) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan most, 1)
	go func() {
		var m most
		tick := time.NewTicker(time.Second / 2)
		defer tick.Stop()
		for ctx.Err() == nil {
			processed := s.Score.Counts().Done
			m.pending = max(m.pending, arriving*time.Since(s.begun).Seconds()-float64(processed))
			if bytes, err := s.metric(ctx, "process_resident_memory_bytes"); err == nil {
				m.memory = max(m.memory, bytes)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		done <- m
	}()
	t.Cleanup(cancel)
	return func() most {
		cancel()
		return <-done
	}
}

// requireLikeTwin fails if the Function had replicas since a time that the twin, which is read truly, had not, or if
// the adapter used too much memory.
func (s *subject) requireLikeTwin(t *testing.T, since time.Time, m most) {
	t.Helper()
	least, largest := s.replicas(s.twin, since)
	// Where the machine stalled, messages arrive at once, and true answers about both may differ by all of them.
	burst := int(m.pending * (1/rateWindow.Seconds() + 1/(0.4*objective.Seconds())) * serviceTime.Seconds())
	lowest, highest := s.replicas(s.Function, since)
	t.Logf("%d to %d replicas, and the twin %d to %d; %.0f messages were pending at most, %.0f MiB used", lowest, highest,
		least, largest, m.pending, m.memory/(1<<20))
	described := s.Describe(t.Context(), s.Name, s.twin.Name)
	require.LessOrEqual(t, highest, largest+apart+burst, described)
	require.GreaterOrEqual(t, lowest, min(least, needed), described)
	require.Positive(t, m.memory)
	require.Less(t, m.memory, float64(memory), "bytes of the adapter")
}

// replicas is from which to which spec.replicas a Function had since a time.
func (s *subject) replicas(f *stage.Function, since time.Time) (least, largest int) {
	desired := s.Mesh.Desired(stage.Namespace, f.Name, since)
	return slices.Min(desired), slices.Max(desired)
}

// metric is a number of the adapter's metrics.
func (s *subject) metric(ctx context.Context, series string) (float64, error) {
	body, err := s.Ask(ctx, s.Adapter, "/metrics")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), series+" "); found {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("no series %s", series)
}
