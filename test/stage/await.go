// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// Await waits for a condition as long as cluster.WaitFor does, and fails the test after that: no test has a limit of
// its own, because a busy machine exceeds it. The failure has what the policies of the names, their
// HorizontalPodAutoscalers, the adapters, the scaler and KEDA said.
func (s *Stage) Await(t testing.TB, what string, holds cluster.Condition, policies ...string) {
	t.Helper()
	if err := cluster.WaitFor(t.Context(), what, pollEvery, holds); err != nil {
		t.Fatalf("%v\n%s", err, s.Describe(context.WithoutCancel(t.Context()), policies...))
	}
}

// AwaitPolicy waits until a policy is as expected, and returns it.
func (s *Stage) AwaitPolicy(t testing.TB, name, what string,
	holds func(p *v1alpha1.AutoscalingPolicy) bool,
) (p *v1alpha1.AutoscalingPolicy) {
	t.Helper()
	s.Await(t, "policy "+name+": "+what, func(ctx context.Context) (_ bool, _ string, err error) {
		if p, err = s.Policy(ctx, name); err != nil {
			return false, "it is unknown", err
		}
		return holds(p), decided(p) + "\n" + Conditions(p), nil
	}, name)
	return p
}

// AwaitConditions waits until a policy has these conditions at the same time, such as "Ready=True/Scaling", and
// returns the message of the first one.
func (s *Stage) AwaitConditions(t testing.TB, name string, wanted ...string) (message string) {
	t.Helper()
	s.AwaitPolicy(t, name, fmt.Sprint(wanted), func(p *v1alpha1.AutoscalingPolicy) bool {
		all := strings.Split(Conditions(p), "\n")
		for i := len(wanted) - 1; i >= 0; i-- {
			said, holds := messageOf(all, wanted[i])
			if !holds {
				return false
			}
			message = said
		}
		return true
	})
	return message
}

// AwaitMessage waits until a policy has a condition with the words in its message. A reason may come earlier with other
// words: a request that a stall holds up has no answer in time, and is PulsarUnreachable too.
func (s *Stage) AwaitMessage(t testing.TB, name, wanted string, words ...string) {
	t.Helper()
	s.AwaitPolicy(t, name, fmt.Sprint(wanted, words), func(p *v1alpha1.AutoscalingPolicy) bool {
		_, holds := messageOf(strings.Split(Conditions(p), "\n"), wanted, words...)
		return holds
	})
}

// AwaitGone waits until an object does not exist.
func (s *Stage) AwaitGone(t testing.TB, object client.Object) {
	t.Helper()
	key := client.ObjectKeyFromObject(object)
	s.Await(t, fmt.Sprintf("%T %s to be gone", object, key), func(ctx context.Context) (bool, string, error) {
		err := s.Client.Get(ctx, key, object)
		return apierrors.IsNotFound(err), "it is there", client.IgnoreNotFound(err)
	}, object.GetName())
}

// Await is Stage.Await about the Function's policy; a failure also has the Function's replicas and messages.
func (f *Function) Await(t testing.TB, what string, holds cluster.Condition) {
	t.Helper()
	f.stage.Await(t, f.Name+": "+what, func(ctx context.Context) (bool, string, error) {
		is, detail, err := holds(ctx)
		counts := f.Score.Counts()
		return is, fmt.Sprintf("%s; %d replicas run, %d messages are done, %d late", detail,
			f.stage.Mesh.Running(Namespace, f.Name), counts.Done, counts.Late), err
	}, f.Name)
}

// AwaitPolicy is Stage.AwaitPolicy of the Function's policy.
func (f *Function) AwaitPolicy(t testing.TB, what string,
	holds func(p *v1alpha1.AutoscalingPolicy) bool,
) *v1alpha1.AutoscalingPolicy {
	t.Helper()
	return f.stage.AwaitPolicy(t, f.Name, what, holds)
}

// AwaitConditions is Stage.AwaitConditions of the Function's policy.
func (f *Function) AwaitConditions(t testing.TB, wanted ...string) (message string) {
	t.Helper()
	return f.stage.AwaitConditions(t, f.Name, wanted...)
}

// AwaitReplicas waits until spec.replicas is from least to most, and at 0 until all replicas have ended.
func (f *Function) AwaitReplicas(t testing.TB, least, most int64) {
	t.Helper()
	f.Await(t, fmt.Sprintf("%d to %d replicas", least, most), func(ctx context.Context) (bool, string, error) {
		replicas, err := f.Replicas(ctx)
		return replicas.Within(least, most), fmt.Sprintf("%+v", replicas), err
	})
}

// AwaitDone waits until that many more messages are processed.
func (f *Function) AwaitDone(t testing.TB, more int) {
	t.Helper()
	before := f.Score.Counts().Done
	f.Await(t, fmt.Sprint(more, " more messages to be done"), func(context.Context) (bool, string, error) {
		done := f.Score.Counts().Done
		return done >= before+int64(more), fmt.Sprint(done-before, " more"), nil
	})
}

// AwaitAllDone waits until the replicas have processed all published messages.
func (f *Function) AwaitAllDone(ctx context.Context) error {
	return cluster.WaitFor(ctx, "all messages to be done", pollEvery, func(context.Context) (bool, string, error) {
		done := f.Score.Counts().Done
		return done == f.Published(), fmt.Sprintf("%d published, %d done", f.Published(), done), nil
	})
}

// AwaitHPA waits until the HorizontalPodAutoscaler of the policy has a condition, such as "ScalingActive=True" or
// "ScalingActive=False/ScalingDisabled", whose message contains the text.
func (f *Function) AwaitHPA(t testing.TB, wanted string, words ...string) {
	t.Helper()
	f.Await(t, fmt.Sprint("HorizontalPodAutoscaler: ", wanted, words), func(ctx context.Context) (bool, string, error) {
		hpa, err := f.Autoscaler(ctx)
		if err != nil || hpa == nil {
			return false, "none", err
		}
		all := hpaConditions(hpa)
		_, holds := messageOf(all, wanted, words...)
		return holds, strings.Join(all, "\n"), nil
	})
}

// messageOf is the message of a condition among lines of "Type=Status/Reason: message", if it has the words.
func messageOf(conditions []string, wanted string, words ...string) (message string, holds bool) {
	for _, line := range conditions {
		rest, found := strings.CutPrefix(line, wanted)
		if found && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, ":")) {
			_, message, _ := strings.Cut(rest, ": ")
			lacks := func(text string) bool { return !strings.Contains(message, text) }
			return message, !slices.ContainsFunc(words, lacks)
		}
	}
	return "", false
}

// Conditions are those of a policy, a line of "Type=Status/Reason: message" each.
func Conditions(p *v1alpha1.AutoscalingPolicy) string {
	lines := make([]string, 0, len(p.Status.Conditions))
	for _, c := range p.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(lines, "\n")
}

func hpaConditions(hpa *autoscalingv2.HorizontalPodAutoscaler) []string {
	lines := make([]string, 0, len(hpa.Status.Conditions))
	for _, c := range hpa.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return lines
}

// decided is the status of a policy without its conditions.
func decided(p *v1alpha1.AutoscalingPolicy) string {
	status := p.Status.DeepCopy()
	status.Conditions = nil
	text, _ := json.Marshal(status) // a status of the API can be encoded
	return string(text)
}

// Describe is the state for a person, after a failure.
func (s *Stage) Describe(ctx context.Context, policies ...string) string {
	var text strings.Builder
	for _, name := range policies {
		if p, err := s.Policy(ctx, name); err != nil {
			fmt.Fprintf(&text, "policy %s: %v\n", name, err)
		} else {
			fmt.Fprintf(&text, "policy %s: %s\n%s\n", name, decided(p), Conditions(p))
		}
		if hpa, err := s.autoscaler(ctx, name); err != nil || hpa == nil {
			fmt.Fprintf(&text, "HorizontalPodAutoscaler: none %v\n", err)
		} else {
			fmt.Fprintf(&text, "HorizontalPodAutoscaler: current %d, desired %d\n%s\n", hpa.Status.CurrentReplicas,
				hpa.Status.DesiredReplicas, strings.Join(hpaConditions(hpa), "\n"))
		}
	}
	for _, a := range s.allAdapters() {
		fmt.Fprintf(&text, "%s, ended %t:\n%s\n", a.Name(), a.Ended() != nil, a.LogTail())
	}
	if s.KEDA != nil {
		fmt.Fprintf(&text, "scaler:\n%s\nKEDA's operator:\n%s\n", s.Scaler.LogTail(), s.KEDA.Operator.LogTail(logLines))
	}
	return text.String()
}
