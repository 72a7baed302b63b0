// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const component = "public/default/resize"

// podStart is a pod that was created at noon, with the seconds until it had a node, of its init containers, and until
// its containers ran.
func podStart(instance int32, scheduled, initializing, running int) policy.PodStart {
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return policy.PodStart{
		Pod: fmt.Sprint("resize-function-", instance), Instance: instance, Created: noon(),
		Scheduled: second(scheduled), Initializing: second(initializing), Running: second(running),
	}
}

// consumes adds the first consumer of an instance, in seconds after noon.
func (s *story) consumes(instance int32, after int) {
	if s.d.Reading.Started == nil {
		s.d.Reading.Started = map[string]time.Time{}
	}
	s.d.Reading.Started[fmt.Sprintf("%s#%d", component, instance)] = noon().Add(time.Duration(after) * time.Second)
}

// slowStart is the story of an objective of a minute and starts of 52 s.
func slowStart(t testing.TB) *story {
	t.Helper()
	s := begun(t)
	s.objectiveIs(time.Minute)
	s.d.State.Start = policy.Start{Seconds: 52, Count: 2}
	s.o.Target.Component = component
	s.o.Pods = &policy.Pods{}
	return s
}

func TestTheLongestPhaseOfASlowStartIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		pod    policy.PodStart
		total  int
		want   v1alpha1.ReplicaStart
		advice string
	}{
		"the wait for a node": {
			podStart(3, 30, 0, 35), 45, v1alpha1.ReplicaStart{
				TotalSeconds:      45,
				SchedulingSeconds: 30, ContainersSeconds: 5, ProgramSeconds: 10,
			}, "For 30s of these, it waits for a node: keep spare nodes, or raise its priorityClassName",
		},
		"the download of an init container": {
			podStart(3, 1, 20, 25), 45, v1alpha1.ReplicaStart{
				TotalSeconds:      45,
				SchedulingSeconds: 1, InitContainersSeconds: 20, ContainersSeconds: 4, ProgramSeconds: 20,
			}, "For 20s of these, its init containers run: put the package into the image",
		},
		"the pull of an image": {
			podStart(3, 1, 0, 31), 45, v1alpha1.ReplicaStart{
				TotalSeconds:      45,
				SchedulingSeconds: 1, ContainersSeconds: 30, ProgramSeconds: 14,
			}, "For 30s of these, its images are pulled and its containers created: pull the images on all nodes in advance",
		},
		"the program": {
			podStart(3, 1, 0, 5), 45, v1alpha1.ReplicaStart{
				TotalSeconds:      45,
				SchedulingSeconds: 1, ContainersSeconds: 4, ProgramSeconds: 40,
			}, "For 40s of these, its program starts and connects: raise resources.cpu, at least until it consumes (in-place " +
				"resize), or put the package into the image",
		},
		"a broker with a slow clock": {
			podStart(3, 1, 0, 31), 29, v1alpha1.ReplicaStart{
				TotalSeconds: 31, SchedulingSeconds: 1, ContainersSeconds: 30,
			}, "A pod has its first consumer 31s after its creation. For 30s of these, ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := slowStart(t)
			s.o.Pods.Starts = []policy.PodStart{test.pod}
			s.consumes(3, test.total)
			s.goOn(10 * time.Second)
			require.Equal(t, "False/ObjectiveTooShort", s.says(v1alpha1.ConditionObjectiveAchievable))
			require.Contains(t, s.message(v1alpha1.ConditionObjectiveAchievable), test.advice)
			test.want.Replicas = 1
			test.want.MeasuredAt = metav1.NewTime(noon().Add(time.Duration(test.total) * time.Second))
			require.Equal(t, &test.want, s.shown.Start)

			s.objectiveIs(10 * time.Minute)
			s.goOn(10 * time.Second)
			require.Nil(t, s.shown.Start, "the objective leaves time for it")
		})
	}
}

func TestTheDownloadOfAContainerIsDividedFromItsProgram(t *testing.T) {
	const starts = "its program starts and connects: raise resources.cpu, at least until it consumes (in-place resize)"
	const downloads = "its container downloads the package: put the package into the image, or serve packages nearby"
	for name, test := range map[string]struct {
		began    int // seconds after noon
		download *int32
		program  int32
		advice   string
	}{
		"the download is longer": {
			35, new(int32(30)), 10, "For 30s of these, " + downloads,
		},
		"the program is longer": {
			7, new(int32(2)), 38, "For 38s of these, " + starts,
		},
		"the clock of the pod is slow": {3, new(int32(0)), 40, "For 40s of these, " + starts},
		"the clock of the pod is fast": {
			99, new(int32(40)), 0, "For 40s of these, " + downloads,
		},
		"the process is of an earlier pod": {
			-20, nil, 40, "For 40s of these, " + starts + ", or put the package into the image",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := slowStart(t)
			s.o.Pods.Starts = []policy.PodStart{podStart(3, 1, 0, 5)}
			s.consumes(3, 45)
			s.d.Reading.Instances.Began = map[string]time.Time{
				"resize-function-3": noon().Add(time.Duration(test.began) * time.Second),
			}
			s.goOn(10 * time.Second)
			require.Equal(t, test.download, s.shown.Start.PackageSeconds)
			require.Equal(t, test.program, s.shown.Start.ProgramSeconds)
			_, advice, _ := strings.Cut(s.message(v1alpha1.ConditionObjectiveAchievable), "creation. ")
			require.Equal(t, test.advice, advice)
		})
	}
}

func TestAStartIsTheMedianOfThoseThatConsume(t *testing.T) {
	s := slowStart(t)
	for instance, total := range []int{300, 40, 50, 45} {
		s.o.Pods.Starts = append(s.o.Pods.Starts, podStart(int32(instance), 1, 0, 5))
		s.consumes(int32(instance), total)
	}
	s.o.Pods.Starts = append(s.o.Pods.Starts, podStart(4, 1, 0, 5)) // does not consume yet
	s.goOn(10 * time.Second)
	require.Equal(t, int32(4), s.shown.Start.Replicas)
	require.Equal(t, int32(45), s.shown.Start.TotalSeconds)
}

func TestAnUnknownStartIsNotShown(t *testing.T) {
	for name, change := range map[string]func(*story){
		"no pod is known": func(s *story) { s.o.Pods = nil },
		"the pod has no consumer yet": func(s *story) {
			s.d.Reading.Started = nil
			s.consumes(4, 45)
		},
		"the consumer is of an earlier pod": func(s *story) {
			s.d.Reading.Started = nil
			s.consumes(3, -1)
		},
		"it took too long to be a start": func(s *story) {
			s.d.Reading.Started = nil
			s.consumes(3, 601)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := slowStart(t)
			s.o.Pods.Starts = []policy.PodStart{podStart(3, 1, 0, 5)}
			s.consumes(3, 45)
			change(s)
			s.goOn(10 * time.Second)
			require.Nil(t, s.shown.Start)
			require.Contains(t, s.message(v1alpha1.ConditionObjectiveAchievable), "or make replicas start faster")
			require.NotContains(t, s.message(v1alpha1.ConditionObjectiveAchievable), "first consumer")
		})
	}
}

func TestAStartStaysInTheStatus(t *testing.T) {
	s := slowStart(t)
	s.o.Pods.Starts = []policy.PodStart{podStart(3, 1, 0, 5)}
	s.consumes(3, 45)
	s.goOn(time.Minute)
	written := s.status.Start
	require.NotNil(t, written)
	s.d.Reading.Started = nil // more than ten minutes ago
	s.anotherProcess()
	s.goOn(time.Minute)
	require.Equal(t, written, s.shown.Start)
	require.Contains(t, s.message(v1alpha1.ConditionObjectiveAchievable), "its program starts and connects")
}
