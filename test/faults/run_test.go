// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
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
	// answers is the number of faulty responses, and lasts the duration of the fault for faults.Always.
	answers int
	lasts   time.Duration
	// partitions of the topic; 0 is a topic without partitions.
	partitions int
	// topics are how many inputs the Function has; 0 is one.
	topics int
	// text is in a condition during the fault; empty if none is required.
	text string
	// core modes are those that show most, and alone modes run without others beside them.
	core, alone bool
}

const (
	// watched is how long replicas are watched after the fault.
	watched = 15 * time.Second
	// apart is the largest difference to the twin's replicas, which vary by one.
	apart = 2
	// memory is the limit for the adapter in all modes together.
	memory = 200 << 20
)

// subject is a Function that is read through a proxy.
type subject struct {
	*scene
	*stage.Function
	proxy *faults.Proxy
}

// run runs one mode.
func (m mode) run(t *testing.T, name string) {
	t.Helper()
	s := newSubject(t, name, m)
	s.Await(t, "both to be settled", s.settled)
	since := time.Now()
	s.proxy.Falsify(m.fault, m.answers)
	if m.answers == faults.Always {
		if m.text != "" {
			s.AwaitPolicy(t, "a condition to say "+m.text, func(p *v1alpha1.AutoscalingPolicy) bool {
				return strings.Contains(stage.Conditions(p), m.text)
			})
		}
		s.watch(t, time.Until(since.Add(m.lasts)))
	} else {
		s.Await(t, "the wrong answers to be given", func(context.Context) (bool, string, error) {
			return s.proxy.Told() == m.answers, fmt.Sprint(s.proxy.Told()), nil
		})
	}
	require.Positive(t, s.proxy.Tell(), "no answer was wrong")
	s.watch(t, watched)
	s.AwaitConditions(t, "Ready=True", "BacklogKnown=True")
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
	require.NoError(t, s.Client.Create(ctx, policy(name)))
	var publishing errgroup.Group
	publishing.Go(func() error { return s.Publish(ctx, load.Constant(arriving)) })
	t.Cleanup(func() {
		cancel()
		require.NoError(t, publishing.Wait())
		require.NoError(t, s.Remove(context.WithoutCancel(t.Context())))
	})
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

// watch fails if replicas differ too much from the twin's, or the adapter uses too much memory.
func (s *subject) watch(t *testing.T, length time.Duration) {
	t.Helper()
	for end := time.Now().Add(length); time.Now().Before(end); {
		mine, err := s.Replicas(t.Context())
		require.NoError(t, err)
		others, err := s.twin.Replicas(t.Context())
		require.NoError(t, err)
		if distance(mine.Spec, others.Spec) > apart {
			t.Fatalf("%d replicas, and the twin has %d\n%s", mine.Spec, others.Spec,
				s.Describe(t.Context(), s.Name, s.twin.Name))
		}
		require.Less(t, s.resident(t), float64(memory), "bytes of the adapter")
		select {
		case <-t.Context().Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// resident is the memory of the adapter in bytes, by its own metrics.
func (s *subject) resident(t *testing.T) float64 {
	t.Helper()
	body, err := s.Ask(t.Context(), s.Adapter, "/metrics")
	require.NoError(t, err)
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "process_resident_memory_bytes "); found {
			bytes, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			return bytes
		}
	}
	t.Fatal("the adapter does not say what memory it takes")
	return 0
}
