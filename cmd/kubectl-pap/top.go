// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

const topLong = `List autoscaling policies, worst first: those that miss their latency objective, those for which it is
unknown whether they do, and the others, each by their wait relative to the objective.

  WAIT/OBJ   how long a message published now would wait, and the latency objective
  TREND      with --watch: the last waits; the full height is the objective or more
  BACKLOG    messages in the backlog, without delayed ones
  IN/S       messages that arrive per second
  OUT/S      messages that are processed per second
  REPLICAS   replicas that were decided, that the target has in its spec, and that run
  WHY        why messages are late or replicas are held or limited: a reason of docs/status.md, and of a hold one
             of docs/algorithm.md (Special cases)

An unknown value is "-", and absent with -o json or yaml. The numbers are those of the status, which has a decision at
once, and other changes within a minute (5 minutes with more than 2,000 policies). On a terminal, long names and reasons
are cut to fit.

Needed permissions: get, list and watch of autoscalingpolicies, which the chart adds to the role "view".`

const topExample = `  # The policies of the current namespace
  kubectl pap top

  # Those of all namespaces with a label, redrawn when they change
  kubectl pap top -A -l team=media --watch

  # With the target, the actuator, what one replica processes, and the age of the measurement
  kubectl pap top -o wide

  # The policies with messages that wait longer than the objective
  kubectl pap top -A -o json | jq -r '.items[] | select(.waitPercent > 100) | .namespace + "/" + .name'`

type topOptions struct {
	cluster  clusterFlags
	output   outputFlag
	watch    bool
	selector string
}

func newTop(streams genericiooptions.IOStreams) *cobra.Command {
	o := topOptions{cluster: newClusterFlags()}
	command := &cobra.Command{
		Use: "top", Short: "List policies by how far messages are from their latency objective",
		Long: topLong, Example: topExample, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context(), streams.Out) },
	}
	f := command.Flags()
	f.BoolVarP(&o.watch, "watch", "w", false, "Redraw the list when a policy changes.")
	f.StringVarP(&o.selector, "selector", "l", "", "Label selector of the policies, such as team=media.")
	o.output.addTo(command, "wide, json or yaml, or a table of 80 columns when empty.", formWide, formJSON, formYAML)
	o.cluster.addTo(f)
	o.cluster.addNamespaces(f, "Namespace of the policies.", "List the policies of all namespaces.")
	return command
}

// selection are the policies to list.
type selection struct {
	// namespace is empty for all.
	namespace string
	labels    labels.Selector
}

func (s selection) list(ctx context.Context, from client.Reader) ([]v1alpha1.AutoscalingPolicy, error) {
	var found v1alpha1.AutoscalingPolicyList
	err := from.List(ctx, &found, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: s.labels})
	if err != nil {
		return nil, fmt.Errorf("listing the policies: %w", withFix(err))
	}
	return found.Items, nil
}

// withFix adds the fix to an error of the API server.
func withFix(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w: install pulsar-autoscaler on this cluster, or select another one with --context", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: bind the ClusterRole view, or pulsar-autoscaler-view, to your user", err)
	default:
		return err
	}
}

func (o *topOptions) run(ctx context.Context, out io.Writer) error {
	selected, err := o.selection()
	if err != nil {
		return err
	}
	kube, err := o.cluster.client()
	if err != nil {
		return err
	}
	policies, err := selected.list(ctx, kube)
	if err != nil {
		return err
	}
	if !o.watch {
		return o.write(out, policies, time.Now())
	}
	config, err := o.cluster.config().ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	watched, err := selected.watch(ctx, config, kube)
	if err != nil {
		return err
	}
	watched.first = policies
	return watched.draw(ctx, &screen{out: out, table: o.table()})
}

func (o *topOptions) selection() (selection, error) {
	if o.watch && (o.output.form == formJSON || o.output.form == formYAML) {
		return selection{}, errors.New("--watch draws a table: leave out --output, or set it to wide")
	}
	parsed, err := labels.Parse(o.selector)
	if err != nil {
		return selection{}, fmt.Errorf("--selector: %w", err)
	}
	namespace, err := o.cluster.namespaces()
	return selection{namespace, parsed}, err
}

func (o *topOptions) table() topTable {
	return topTable{namespaces: *o.cluster.all, wide: o.output.form == formWide}
}

func (o *topOptions) write(out io.Writer, policies []v1alpha1.AutoscalingPolicy, now time.Time) error {
	rows := topRows(policies)
	return o.output.write(out, map[string][]topRow{"items": rows}, func(int) string {
		switch width, _ := terminalSize(out); {
		case len(rows) > 0:
			return o.table().text(rows, width, now) // it is not cut for other programs
		case *o.cluster.all:
			return "No policies found.\n"
		default:
			return "No policies found in this namespace: -A lists those of all namespaces.\n"
		}
	})
}

// topRow is what top shows of a policy. Absent is unknown.
type topRow struct {
	measured

	Namespace                   string                 `json:"namespace"`
	Name                        string                 `json:"name"`
	Target                      string                 `json:"target,omitempty"`
	Mode                        v1alpha1.Mode          `json:"mode,omitempty"`
	ObjectiveMet                metav1.ConditionStatus `json:"objectiveMet"`
	LatencyObjectiveSeconds     float64                `json:"latencyObjectiveSeconds"`
	DesiredReplicas             *int32                 `json:"desiredReplicas,omitempty"`
	SpecReplicas                *int32                 `json:"specReplicas,omitempty"`
	RunningReplicas             *int32                 `json:"runningReplicas,omitempty"`
	Hold                        string                 `json:"hold,omitempty"`
	LimitedBy                   string                 `json:"limitedBy,omitempty"`
	Why                         string                 `json:"why,omitempty"`
	Actuator                    v1alpha1.Actuator      `json:"actuator,omitempty"`
	MessagesPerSecondPerReplica *float64               `json:"messagesPerSecondPerReplica,omitempty"`
	// paused is by the mode of the policy or, for all policies, by an annotation.
	paused bool
}

type measured struct {
	MeasuredAt                 *metav1.Time       `json:"measuredAt,omitempty"`
	ReadyMessages              *int64             `json:"readyMessages,omitempty"`
	DiscountedMessages         *int64             `json:"discountedMessages,omitempty"`
	PublishedMessagesPerSecond *float64           `json:"publishedMessagesPerSecond,omitempty"`
	ProcessedMessagesPerSecond *float64           `json:"processedMessagesPerSecond,omitempty"`
	Consumers                  *int32             `json:"consumers,omitempty"`
	WaitSeconds                *float64           `json:"waitSeconds,omitempty"`
	WaitPercent                *float64           `json:"waitPercent,omitempty"`
	Coverage                   *v1alpha1.Coverage `json:"coverage,omitempty"`
}

// measuredOf are the signals in the status; empty without.
func measuredOf(p *v1alpha1.AutoscalingPolicy) (m measured) {
	s := p.Status.Signals
	if s == nil {
		return m
	}
	m = measured{
		MeasuredAt: &s.MeasuredAt, ReadyMessages: s.ReadyMessages, DiscountedMessages: s.DiscountedMessages,
		PublishedMessagesPerSecond: rateOf(s.PublishRate), ProcessedMessagesPerSecond: rateOf(s.ProcessRate),
		Consumers: s.Consumers, Coverage: s.Coverage,
	}
	if s.Wait != nil {
		m.WaitSeconds = new(s.Wait.Seconds())
		m.WaitPercent = new(math.Round(100 * s.Wait.Seconds() / decide.LatencyObjective(p.Spec).Seconds()))
	}
	return m
}

// rateOf is nil for an unknown rate.
func rateOf(r *v1alpha1.Rate) *float64 {
	if r == nil {
		return nil
	}
	const thousandths = 1000 // which it has; AsApproximateFloat64 is less exact
	return new(float64(r.MilliValue()) / thousandths)
}

func topRows(policies []v1alpha1.AutoscalingPolicy) []topRow {
	rows := make([]topRow, len(policies))
	for i := range policies {
		rows[i] = newTopRow(&policies[i])
	}
	slices.SortFunc(rows, func(a, b topRow) int {
		return cmp.Or(
			cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.percent(), a.percent()),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return rows
}

func newTopRow(p *v1alpha1.AutoscalingPolicy) topRow {
	s := p.Status
	row := topRow{
		measured: measuredOf(p), Namespace: p.Namespace, Name: p.Name, Target: s.Target, Mode: p.Spec.Mode,
		ObjectiveMet:            conditionStatus(p, v1alpha1.ConditionObjectiveMet),
		LatencyObjectiveSeconds: decide.LatencyObjective(p.Spec).Seconds(),
		DesiredReplicas:         s.DesiredReplicas, SpecReplicas: s.SpecReplicas, RunningReplicas: s.RunningReplicas,
		LimitedBy: limitedBy(p), Why: why(p), paused: served.Paused(p),
	}
	if s.Decision != nil && s.Decision.Hold != nil {
		row.Hold = s.Decision.Hold.Reason
	}
	if s.Actuator != nil {
		row.Actuator = s.Actuator.Type
	}
	if s.Capacity != nil {
		row.MessagesPerSecondPerReplica = rateOf(&s.Capacity.MessagesPerSecond)
	}
	return row
}

// The order of policies.
const (
	rankLate = iota
	rankUnknown
	rankMet
	rankPaused
)

func (r topRow) rank() int {
	switch {
	case r.ObjectiveMet == metav1.ConditionFalse || r.WaitPercent != nil && *r.WaitPercent > 100:
		return rankLate
	case r.paused:
		return rankPaused
	case r.ObjectiveMet == metav1.ConditionUnknown || r.WaitPercent == nil:
		return rankUnknown
	default:
		return rankMet
	}
}

func (r topRow) key() client.ObjectKey { return client.ObjectKey{Namespace: r.Namespace, Name: r.Name} }

// percent sorts an unknown wait as the longest.
func (r topRow) percent() float64 {
	if r.WaitPercent == nil {
		return math.Inf(1)
	}
	return *r.WaitPercent
}

// conditionStatus is Unknown without the condition.
func conditionStatus(p *v1alpha1.AutoscalingPolicy, name string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(p.Status.Conditions, name); c != nil {
		return c.Status
	}
	return metav1.ConditionUnknown
}

// limitedBy is the reason of condition ScalingLimited while it is True, else the bound that changed the decision.
func limitedBy(p *v1alpha1.AutoscalingPolicy) string {
	limited := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionScalingLimited)
	switch {
	case limited != nil && limited.Status == metav1.ConditionTrue:
		return limited.Reason
	case p.Status.Decision != nil:
		return p.Status.Decision.CappedBy
	default:
		return ""
	}
}

// why is one reason: why the autoscaler does not do its job, why messages are late, why replicas are held, or what
// limits them.
func why(p *v1alpha1.AutoscalingPolicy) string {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	met := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionObjectiveMet)
	decision := p.Status.Decision
	switch {
	case ready == nil:
		return ""
	case ready.Status != metav1.ConditionTrue:
		return ready.Reason
	case met != nil && met.Status == metav1.ConditionFalse && met.Reason != v1alpha1.ReasonReplicasHeld:
		return met.Reason
	case decision != nil && decision.Hold != nil:
		return decision.Hold.Reason
	case limitedBy(p) != "":
		return limitedBy(p)
	case ready.Reason != v1alpha1.ReasonScaling:
		return ready.Reason // ScaledToZero, Recommending or Paused
	default:
		return ""
	}
}
