// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
)

const explainLong = `Explain the last decision of a policy: what was measured and learned, the equation with its
numbers, the guards that were tried and the one that held, limits, what would give another number, what writes the
replicas, what runs, and the conditions that are not as they should be.

All of it is in the spec and the status of the policy. A condition's message names the fix, and docs/runbook.md has
more for each reason. With -o json or yaml an unknown value is absent, and units are in the names of the fields.

With --at it shows what the events of the policy say until then: each change of the desired replicas with its equation,
and each problem and its end. With --prometheus it also shows what the series of the adapter (docs/metrics.md) say about
that time: what was measured, learned and decided, and what held or limited the replicas.

Needed permissions: get of autoscalingpolicies, which the chart adds to the role "view"; with --at also list of events,
which that role has.`

const explainExample = `  # The last decision of policy resize
  kubectl pap explain resize

  # The decisions of the hour before 14:00
  kubectl pap explain resize --at 2026-11-27T14:00:00Z

  # What was measured and decided last night, when Kubernetes has no events any more
  kubectl pap explain resize --at 12h --prometheus http://localhost:9090

  # Of the policy that is furthest from its objective
  kubectl pap explain $(kubectl pap top -o json | jq -r '.items[0].name')

  # What holds the replicas, for a script
  kubectl pap explain resize -o json | jq '.decided.heldBy.reason'`

type explainOptions struct {
	cluster    clusterFlags
	output     outputFlag
	prometheus serverOptions
	at         string
}

func newExplain(streams genericiooptions.IOStreams) *cobra.Command {
	o := explainOptions{cluster: newClusterFlags()}
	command := &cobra.Command{
		Use: "explain NAME", Short: "Explain the last decision of a policy",
		Long: explainLong, Example: explainExample, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command.Context(), args[0], streams.Out)
		},
		ValidArgsFunction: o.cluster.completeName,
	}
	f := command.Flags()
	f.StringVar(&o.at, "at", "", "Show the events of the policy until this time instead: a time such as "+
		"2026-11-27T14:00:00Z, or how long ago, such as 10m.")
	o.output.addTo(command, "json or yaml, or text when empty.", formJSON, formYAML)
	o.prometheus.add(f)
	o.cluster.addTo(f)
	o.cluster.addNamespace(f, "Namespace of the policy.")
	return command
}

func (o *explainOptions) run(ctx context.Context, name string, out io.Writer) error {
	if o.at == "" && o.prometheus.url != "" {
		return errors.New("--prometheus needs a time: set --at")
	}
	now := time.Now()
	var until time.Time
	if o.at != "" {
		var err error
		if until, err = parseTime(o.at, now); err != nil {
			return err
		}
	}
	p, kube, err := o.cluster.policy(ctx, name)
	if err != nil {
		return err
	}
	e := ofNow(&p, now)
	if o.at != "" {
		if e, err = o.ofTime(ctx, kube, &p, until); err != nil {
			return err
		}
	}
	return o.output.write(out, e, e.text)
}

// ofTime is what was said about a policy at a time, and not its status, which is of now.
func (o *explainOptions) ofTime(ctx context.Context, kube client.Reader, p *v1alpha1.AutoscalingPolicy,
	at time.Time,
) (e explanation, err error) {
	e = newExplanation(p)
	e.past = &past{At: at}
	if e.Events, err = eventsOf(ctx, kube, p, at); err != nil {
		return e, err
	}
	if o.prometheus.url != "" {
		e.Recorded, err = o.recorded(ctx, p, at)
	}
	return e, err
}

// policy reads a policy, and returns the client that read it.
func (c clusterFlags) policy(ctx context.Context, name string) (p v1alpha1.AutoscalingPolicy, kube client.Client,
	err error,
) {
	namespace, err := c.namespace()
	if err != nil {
		return p, nil, err
	}
	if kube, err = c.client(); err != nil {
		return p, nil, err
	}
	if err := kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
		return p, nil, fmt.Errorf("reading policy %s in namespace %s: %w", name, namespace, withFix(err))
	}
	return p, kube, nil
}

// completeName completes the name of a policy. A shell shows no errors.
func (c clusterFlags) completeName(command *cobra.Command, args []string,
	_ string,
) (names []string, directive cobra.ShellCompDirective) {
	namespace, err := c.namespace()
	kube, unreachable := c.client()
	if len(args) > 0 || err != nil || unreachable != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	policies, _ := selection{namespace, labels.Everything()}.list(command.Context(), kube)
	for i := range policies {
		names = append(names, policies[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

const mostEvents = 20

// parseTime parses a time, or how long ago it was.
func parseTime(text string, now time.Time) (time.Time, error) {
	if before, err := model.ParseDuration(text); err == nil {
		return now.Add(-time.Duration(before)), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("--at is %q: it must be a time such as 2026-11-27T14:00:00Z, or how long ago, such as 10m "+
			"or 2d", text)
	}
	return at, nil
}

// eventsOf are the last events of a policy until a time, the newest first.
func eventsOf(ctx context.Context, from client.Reader, p *v1alpha1.AutoscalingPolicy,
	until time.Time,
) ([]event, error) {
	var found corev1.EventList
	about := fields.AndSelectors(fields.OneTermEqualSelector("involvedObject.kind", v1alpha1.KindAutoscalingPolicy),
		fields.OneTermEqualSelector("involvedObject.name", p.Name))
	err := from.List(ctx, &found, client.InNamespace(p.Namespace), client.MatchingFieldsSelector{Selector: about})
	if err != nil {
		return nil, fmt.Errorf("listing the events of policy %s: %w", p.Name, withFix(err))
	}
	events := slices.DeleteFunc(found.Items, func(e corev1.Event) bool { return began(e).After(until) })
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return began(b).Compare(began(a)) })
	shown := []event{}
	for i := range events[:min(len(events), mostEvents)] {
		e := &events[i]
		one := event{Time: began(*e).UTC(), Reason: e.Reason, Message: e.Message}
		if e.Series != nil {
			one.Times, one.Until = e.Series.Count, new(e.Series.LastObservedTime.UTC())
		}
		shown = append(shown, one)
	}
	return shown, nil
}

func began(e corev1.Event) time.Time {
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.FirstTimestamp.Time
}

func (o *explainOptions) recorded(ctx context.Context, p *v1alpha1.AutoscalingPolicy, at time.Time) (*recorded, error) {
	server, err := o.prometheus.server()
	if err != nil {
		return nil, err
	}
	then, err := history.ReadMoment(ctx, server, p.Namespace, p.Name, at)
	if err != nil {
		return nil, err
	}
	value := func(name string) *float64 {
		number, known := then.Value(name)
		if !known || math.IsNaN(number) || math.IsInf(number, 0) {
			return nil
		}
		return &number
	}
	var messages *int64
	if ready := value("ready_messages"); ready != nil {
		messages = new(int64(math.Round(*ready)))
	}
	return &recorded{
		isEmpty: then.IsEmpty(), Modes: then.Labels("info", "mode"), ReadyMessages: messages,
		PublishedMessagesPerSecond: value("publish_rate"), ProcessedMessagesPerSecond: value("process_rate"),
		WaitSeconds: value("wait_seconds"), LatencyObjectiveSeconds: value("latency_objective_seconds"),
		MessagesPerSecondPerReplica: value("capacity_messages_per_second"),
		DesiredReplicas:             value("desired_replicas"), MinReplicas: value("min_replicas"),
		MaxReplicas: value("max_replicas"), SpecReplicas: value("spec_replicas"),
		RunningReplicas: value("running_replicas"), HeldBy: then.Labels("held", "reason"),
		LimitedBy: then.Labels("limited", "by"), Attention: then.Labels("condition", "type", "status", "reason"),
	}, nil
}
