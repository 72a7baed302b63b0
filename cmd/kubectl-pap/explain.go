// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
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
numbers, holds and limits, what would give another number, what writes the replicas, what runs, and the conditions that
are not as they should be.

All of it is in the spec and the status of the policy. A condition's message names the fix, and docs/runbook.md has
more for each reason.

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
  kubectl pap explain $(kubectl pap top -o json | jq -r '.items[0].name')`

// explainOptions are the flags of kubectl pap explain.
type explainOptions struct {
	cluster    clusterFlags
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
	e := explanation{&p, now}
	var sections []section
	if o.at == "" {
		sections = e.sections()
	} else {
		events, err := eventsOf(ctx, kube, &p, until)
		if err != nil {
			return err
		}
		sections = []section{e.head()}
		if o.prometheus.url != "" {
			recorded, err := o.recorded(ctx, &p, until)
			if err != nil {
				return err
			}
			sections = append(sections, recorded)
		}
		sections = append(sections, events)
	}
	width, _ := terminalSize(out)
	_, err = io.WriteString(out, text(sections, width))
	return err
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

// completeName completes the name of a policy.
func (c clusterFlags) completeName(command *cobra.Command, args []string,
	_ string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.policyNames(command.Context()), cobra.ShellCompDirectiveNoFileComp
}

// policyNames are for the completion of a shell, which shows no errors.
func (c clusterFlags) policyNames(ctx context.Context) (names []string) {
	namespace, err := c.namespace()
	if err != nil {
		return nil
	}
	kube, err := c.client()
	if err != nil {
		return nil
	}
	policies, err := selection{namespace: namespace, labels: labels.Everything()}.list(ctx, kube)
	if err != nil {
		return nil
	}
	for i := range policies {
		names = append(names, policies[i].Name)
	}
	return names
}

// mostEvents of a policy are shown.
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

// eventsOf are the events of a policy until a time, the newest first.
func eventsOf(ctx context.Context, from client.Reader, p *v1alpha1.AutoscalingPolicy,
	until time.Time,
) (section, error) {
	var found corev1.EventList
	about := fields.AndSelectors(fields.OneTermEqualSelector("involvedObject.kind", v1alpha1.KindAutoscalingPolicy),
		fields.OneTermEqualSelector("involvedObject.name", p.Name))
	err := from.List(ctx, &found, client.InNamespace(p.Namespace), client.MatchingFieldsSelector{Selector: about})
	if err != nil {
		return section{}, fmt.Errorf("listing the events of policy %s: %w", p.Name, withFix(err))
	}
	events := slices.DeleteFunc(found.Items, func(e corev1.Event) bool { return began(e).After(until) })
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return began(b).Compare(began(a)) })
	s := section{title: "EVENTS", note: "until " + until.UTC().Format(time.RFC3339) + ", the newest first"}
	for i := range events[:min(len(events), mostEvents)] {
		e := &events[i]
		times := ""
		if e.Series != nil {
			times = fmt.Sprintf(" (%d times until %s)", e.Series.Count, e.Series.LastObservedTime.UTC().Format(time.TimeOnly))
		}
		s.add(began(*e).UTC().Format(time.TimeOnly), "%s: %s%s", e.Reason, e.Message, times)
	}
	if len(events) == 0 {
		s.add("none", "Kubernetes keeps events for an hour, unless the API server has another --event-ttl")
	}
	return s, nil
}

// began is when an event was first reported.
func began(e corev1.Event) time.Time {
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.FirstTimestamp.Time
}

// recorded is what the series of the policy say about a time.
func (o *explainOptions) recorded(ctx context.Context, p *v1alpha1.AutoscalingPolicy, at time.Time) (section, error) {
	server, err := o.prometheus.server()
	if err != nil {
		return section{}, err
	}
	then, err := history.ReadMoment(ctx, server, p.Namespace, p.Name, at)
	if err != nil {
		return section{}, err
	}
	s := section{title: "RECORDED", note: "at " + at.UTC().Format(time.RFC3339)}
	if then.IsEmpty() {
		s.note = "Prometheus has no series of the policy " + s.note
		return s, nil
	}
	value := func(name string) string {
		number, known := then.Value(name)
		if !known {
			return "unknown"
		}
		return strconv.FormatFloat(number, 'g', 4, 64)
	}
	listed := func(name string, labels ...model.LabelName) string {
		return cmp.Or(strings.Join(then.Labels(name, labels...), ", "), "nothing")
	}
	s.add("mode", "%s", listed("info", "mode"))
	s.add("backlog", "%s messages", value("ready_messages"))
	s.add("arriving", "%s messages/s", value("publish_rate"))
	s.add("processed", "%s messages/s", value("process_rate"))
	s.add("wait", "%s s of %s s", value("wait_seconds"), value("latency_objective_seconds"))
	s.add("capacity", "%s messages/s by a replica that is busy", value("capacity_messages_per_second"))
	s.add("decided", "%s, of %s to %s", value("desired_replicas"), value("min_replicas"), value("max_replicas"))
	s.add("in the spec", "%s", value("spec_replicas"))
	s.add("running", "%s", value("running_replicas"))
	s.add("held by", "%s", listed("held", "reason"))
	s.add("limited by", "%s", listed("limited", "by"))
	s.add("attention", "%s", listed("condition", "type", "status", "reason"))
	return s, nil
}
