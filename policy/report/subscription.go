// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

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
		return no(v1alpha1.ReasonNeverAcknowledged, "the window function never acknowledges messages, so its backlog only "+
			"grows and does not show its load: "+acknowledgementFix(target))
	case len(sharers) > 0:
		return no(v1alpha1.ReasonSubscriptionShared, fmt.Sprintf("subscription %q is consumed by %s too, so each takes a "+
			"part of one backlog and would be scaled for all of it: %s", name, strings.Join(sharers, ", "),
			separateSubscriptionFix(o.Policy.Spec)))
	case o.Reading == nil && o.Unknown != nil && !errors.Is(o.Unknown, backlog.ErrNoData):
		return unsure(v1alpha1.ReasonPending, "the broker's report is unknown, see condition BacklogKnown")
	case o.Reading == nil:
		return unsure(v1alpha1.ReasonPending, "the broker has not reported the subscription yet")
	case o.Reading.Type == backlog.NoType || o.Reading.Type == "":
		return unsure(v1alpha1.ReasonNoConsumerSeen, "no consumer has connected to the subscription since the broker loaded "+
			"its topics")
	case o.Reading.Type != target.SubscriptionType || o.Reading.OtherType != "":
		return no(v1alpha1.ReasonSubscriptionDiffers, typeMismatch(o))
	case o.surplus() > 0:
		return no(v1alpha1.ReasonSurplusConsumers, surplusConsumers(o))
	case unconnected(o):
		return no(v1alpha1.ReasonMissingConsumers, missingConsumers(o.Observed))
	default:
		return yes(v1alpha1.ReasonVerified, fmt.Sprintf("the broker reports subscription %q of type %s", name,
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
	apart := "give the target a spec.subscriptionName that no other workload consumes"
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

// surplus is the number of consumers that are not the target's, once they have stayed for some time.
func (o outcome) surplus() int32 {
	if o.decision == nil {
		return 0
	}
	return o.decision.Surplus
}

// surplusConsumers reports that the subscription has more consumers than the target's pods open.
func surplusConsumers(o outcome) string {
	return fmt.Sprintf("subscription %q has %d consumers beside those of %s, which may disconnect at any time and do not "+
		"count as capacity: disconnect them or give them a subscription of their own, or set "+
		"spec.subscription.consumersPerReplica to how many each replica opens",
		o.Target.Subscription.Name, o.surplus(), plan.Name(o.Policy.Spec))
}

// unconnected reports whether the running replicas have had too few consumers for some time. It also counts if the last
// status reported it, since another process may have made the finding.
func unconnected(o outcome) bool {
	last := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionSubscriptionVerified)
	reported := last != nil && last.Reason == v1alpha1.ReasonMissingConsumers
	found := o.findings.unconnected
	return found.lasted(unconnectedFor) || (reported && !found.since.IsZero())
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
func separateSubscriptionFix(spec v1alpha1.AutoscalingPolicySpec) string {
	if spec.Subscription != nil {
		return "have each subscribe under a name of its own, and correct spec.subscription.name"
	}
	return "give each a spec.subscriptionName of its own"
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
