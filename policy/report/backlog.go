// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// UnknownReason is the condition reason for a missing reading.
func UnknownReason(err error) string {
	for _, row := range []struct {
		err    error
		reason string
	}{
		// ErrStale wraps its cause, so it comes first.
		{backlog.ErrStale, v1alpha1.ReasonStale},
		{backlog.ErrNotTracked, v1alpha1.ReasonNotTracked},
		{backlog.ErrNoData, v1alpha1.ReasonNoDataYet},
		{backlog.ErrPartial, v1alpha1.ReasonPulsarUnavailable}, // no partition answered
		{backlog.ErrTopicNotFound, v1alpha1.ReasonTopicNotFound},
		{backlog.ErrSubscriptionNotFound, v1alpha1.ReasonSubscriptionNotFound},
		{backlog.ErrFunctionNotFound, v1alpha1.ReasonFunctionNotFound},
		{backlog.ErrNoWorker, v1alpha1.ReasonNoFunctionWorker},
		{backlog.ErrUnauthenticated, v1alpha1.ReasonCredentialsRefused},
		{backlog.ErrHostNotAllowed, v1alpha1.ReasonHostNotAllowed},
		{backlog.ErrForbidden, v1alpha1.ReasonPermissionMissing},
		{backlog.ErrUnreachable, v1alpha1.ReasonPulsarUnreachable},
		{backlog.ErrUnavailable, v1alpha1.ReasonPulsarUnavailable},
		{backlog.ErrProtocol, v1alpha1.ReasonUnexpectedAnswer},
		{backlog.ErrImplausible, v1alpha1.ReasonImplausibleAnswer},
		{backlog.ErrUnsupported, v1alpha1.ReasonUnsupported},
		{backlog.ErrTooManyTopics, v1alpha1.ReasonTooManyTopics},
	} {
		if errors.Is(err, row.err) {
			return row.reason
		}
	}
	return v1alpha1.ReasonUnknown
}

// backlogKnown is Unknown rather than False until the first answer, and while Pulsar is not polled.
func backlogKnown(o plan.Observed) metav1.Condition {
	switch {
	case o.NothingToDecide():
		return notChecked()
	case partlyKnown(o.Reading):
		return No(v1alpha1.ReasonPartialAnswer, partialAnswer(o.Reading))
	case outdated(o.Measured, o.Now) != nil:
		return No(v1alpha1.ReasonStale, outdated(o.Measured, o.Now).Error())
	case unsupported(o) != nil:
		return No(v1alpha1.ReasonUnsupported, unsupported(o).Error())
	case o.Unknown == nil && o.Reading != nil && o.Reading.PushRefused != nil:
		return Yes(v1alpha1.ReasonPushRefused, wholeAnswer(o.Target)+
			"; brokers do not report its first message, for which it is polled: "+o.Reading.PushRefused.Error())
	case o.Unknown == nil:
		return Yes(v1alpha1.ReasonMeasured, wholeAnswer(o.Target))
	case errors.Is(o.Unknown, backlog.ErrNoData) || errors.Is(o.Unknown, backlog.ErrNotTracked):
		return Unsure(UnknownReason(o.Unknown), o.Unknown.Error())
	default:
		return No(UnknownReason(o.Unknown), o.Unknown.Error())
	}
}

// unsupported is why the strategies can never decide by this reading; nil if they can, or there is none.
func unsupported(o plan.Observed) error {
	if o.Unknown == nil && o.Reading != nil {
		return policy.Unsupported(policy.Input{Spec: o.Policy.Spec, Reading: *o.Reading})
	}
	return nil
}

// partlyKnown reports whether topics are missing, beyond the first answer of new ones.
func partlyKnown(r *backlog.Reading) bool {
	return r != nil && !r.Coverage.Complete() && !r.Coverage.FirstAnswers()
}

// outdated is why the last two polls failed, such as a broker that hangs; nil if they did not. Decisions use the last
// answer for longer. The second poll fails when the answer is two poll intervals old, and after a timeout; later if the
// topics were at rest.
func outdated(m plan.Measured, now time.Time) error {
	const polls = 2.25
	if m.Reading == nil || m.Reading.Trouble == nil ||
		now.Sub(m.Reading.At).Seconds() < polls*m.PollInterval.Seconds()+m.Rested.Seconds() {
		return nil
	}
	return fmt.Errorf("%w: no good answer since %s: %w", backlog.ErrStale, m.Reading.At.UTC().Format(time.RFC3339),
		m.Reading.Trouble)
}

// partialAnswer names the topics that are missing.
func partialAnswer(r *backlog.Reading) string {
	return r.Coverage.Err().Error() + "; replicas are added for the known ones, and none is removed"
}

// wholeAnswer reports that all topics are known, and which inputs are left out.
func wholeAnswer(target *plan.Target) string {
	const all, mostNamed = "Pulsar answers for every input topic", 5
	if target == nil {
		return all
	}
	leftOut := target.Subscription.NonPersistent()
	if len(leftOut) == 0 {
		return all
	}
	return all + " that is persistent; the others keep no backlog and are left out: " +
		plan.Enumerate(leftOut, mostNamed, ", ")
}

// subscriptionVerified compares the target's fields with what the broker and Kubernetes report.
//
// It warns and does not stop scaling: the backlog is right in any case, and stopping would leave messages unprocessed,
// at worst because of the consumer of a terminating pod. Two targets on one subscription are each scaled for the whole
// backlog, which is too much but never too little.
func subscriptionVerified(o outcome) metav1.Condition {
	if withoutTarget(o.Observed) {
		return notChecked()
	}
	name, target := o.Target.Subscription.Name, o.Target
	switch sharers := sharers(o); {
	case target.NeverAcknowledges:
		return No(v1alpha1.ReasonNeverAcknowledged, "the window function never acknowledges messages, so its backlog only "+
			"grows and does not show its load: "+acknowledgementFix(target))
	case len(sharers) > 0:
		return No(v1alpha1.ReasonSubscriptionShared, fmt.Sprintf("subscription %q is consumed by %s too, so each takes a "+
			"part of one backlog and would be scaled for all of it: %s", name, strings.Join(sharers, ", "),
			separateSubscriptionFix(o.Policy.Spec, o.Target)))
	case o.Reading == nil && o.Unknown != nil && !errors.Is(o.Unknown, backlog.ErrNoData):
		return Unsure(v1alpha1.ReasonPending, "the broker's report is unknown, see condition BacklogKnown")
	case o.Reading == nil:
		return Unsure(v1alpha1.ReasonPending, "the broker has not reported the subscription yet")
	case o.Reading.Type == backlog.NoType || o.Reading.Type == "":
		return Unsure(v1alpha1.ReasonNoConsumerSeen, "no consumer has connected to the subscription since the broker loaded "+
			"its topics")
	case o.Reading.Type != target.SubscriptionType || o.Reading.OtherType != "":
		return No(v1alpha1.ReasonSubscriptionDiffers, typeMismatch(o))
	case o.miscounted(o.findings.surplus, v1alpha1.ReasonSurplusConsumers):
		return No(v1alpha1.ReasonSurplusConsumers, surplusConsumers(o))
	case unconnected(o):
		return No(v1alpha1.ReasonMissingConsumers, missingConsumers(o.Observed))
	default:
		return Yes(v1alpha1.ReasonVerified, fmt.Sprintf("the broker reports subscription %q of type %s", name,
			o.Reading.Type))
	}
}

// subscriptionSource is what defines the subscription.
func subscriptionSource(spec v1alpha1.AutoscalingPolicySpec, target *plan.Target) string {
	if spec.Subscription != nil {
		return "spec.subscription"
	}
	return target.Ref.Kind + " " + target.Ref.Name
}

// typeMismatch reports that the broker has another type than the promised one, or several.
func typeMismatch(o outcome) string {
	target, reading := o.Target, o.Reading
	apart := "give the target a " + subscriptionField(target) + " that no other workload consumes"
	if o.Policy.Spec.Subscription != nil {
		apart = "correct spec.subscription, or have the replicas subscribe under a name that no other workload uses"
	}
	promise := fmt.Sprintf("%s promises subscription %q of type %s and the broker reports %s",
		subscriptionSource(o.Policy.Spec, target), target.Subscription.Name, target.SubscriptionType, reading.Type)
	if reading.Type != target.SubscriptionType {
		return fmt.Sprintf("%s: restart the replicas if they run an older configuration or image, or %s", promise, apart)
	}
	return fmt.Sprintf("%s on some topics or partitions and %s on others, which refuse its replicas: disconnect the "+
		"other consumers there, or %s", promise, reading.OtherType, apart)
}

// surplusConsumers reports that the subscription has more consumers than the target's pods open.
func surplusConsumers(o outcome) string {
	return fmt.Sprintf("subscription %q has %d consumers beside those of %s, which may disconnect at any time and do not "+
		"count as capacity: disconnect them or give them a subscription of their own, or set "+
		"spec.subscription.consumersPerReplica to how many each replica opens",
		o.Target.Subscription.Name, plan.Input(o.Observed).SurplusConsumers(), plan.Name(o.Policy.Spec))
}

// unconnected reports whether the running replicas have had too few consumers for some time.
func unconnected(o outcome) bool {
	return o.miscounted(o.findings.unconnected, v1alpha1.ReasonMissingConsumers)
}

// miscounted reports whether the number of consumers has been wrong for some time. It also counts if the last status
// reported it, since another process may have made the finding.
func (o outcome) miscounted(found period, reason string) bool {
	last := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionSubscriptionVerified)
	return found.lasted(consumersFor) || !found.since.IsZero() && last != nil && last.Reason == reason
}

// missingConsumers reports that the subscription has fewer consumers than the running replicas should open.
func missingConsumers(o plan.Observed) string {
	in := plan.Input(o)
	consumers, _ := in.Reading.Consumers.Value() // it is known, or none would be missing
	running, each := min(*o.Pods.Running, *o.Target.Replicas), max(1, o.Policy.Spec.Subscription.ConsumersPerReplica)
	message := fmt.Sprintf("subscription %q has %.0f consumers, and the %d running replicas of %s should have %.0f: ",
		o.Target.Subscription.Name, consumers, running, plan.Name(o.Policy.Spec), consumers+float64(in.MissingConsumers()))
	if opened := int32(consumers) / max(1, running); opened > 0 && opened < each {
		message += fmt.Sprintf("set spec.subscription.consumersPerReplica to how many each replica opens (%d instead of "+
			"%d), or ", opened, each)
	}
	return message + "look at the logs of replicas that do not consume"
}

// separateSubscriptionFix is how to give each workload its own subscription.
func separateSubscriptionFix(spec v1alpha1.AutoscalingPolicySpec, target *plan.Target) string {
	if spec.Subscription != nil {
		return "have each subscribe under a name of its own, and correct spec.subscription.name"
	}
	return "give each a " + subscriptionField(target) + " of its own"
}

// subscriptionField names the subscription in the configuration of Function Mesh or of Pulsar's function worker.
func subscriptionField(target *plan.Target) string {
	if fromWorker(target) {
		return "subName (sourceSubscriptionName of a sink)"
	}
	return "spec.subscriptionName"
}

// maxMessage is the maximum bytes of a condition's message in the API.
const maxMessage = 32 << 10

// acknowledgementFix is how to make a window function acknowledge, in the configuration of Function Mesh or of Pulsar's
// function worker.
func acknowledgementFix(target *plan.Target) string {
	if fromWorker(target) {
		return "update the function with windowConfig.processingGuarantees ATLEAST_ONCE, or with processingGuarantees " +
			"ATLEAST_ONCE"
	}
	return "set spec.windowConfig.processingGuarantees to ATLEAST_ONCE, or spec.processingGuarantee to atleast_once"
}

// fromWorker reports whether Pulsar's function worker has the configuration of the target, and not Function Mesh.
func fromWorker(target *plan.Target) bool {
	return target.Scaling == plan.ByWorker || target.Ref.Kind == string(plan.KindStatefulSet)
}

// sharers are the other functions of which the broker reports consumers.
func sharers(o outcome) []string {
	var all []string
	if o.Reading == nil {
		return all
	}
	for _, component := range o.Reading.Components {
		if component != o.Target.Component && len(all) < maxSharers {
			all = append(all, "the function "+component)
		}
	}
	return all
}

// maxSharers bounds the number of sharers that a message names.
const maxSharers = 10
