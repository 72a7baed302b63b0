// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// subscriptionVerified compares what the target's fields promise with what the broker and Kubernetes report.
//
// It warns and does not stop scaling. The backlog is measured rightly in any case, and who is behind it is known only
// as far as consumers say: stopping would leave work undone, in the worst case for the name of a consumer that is about
// to leave. With two on one subscription each policy scales for the whole backlog, which is too much and never too
// little.
func subscriptionVerified(o outcome) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionSubscriptionVerified}
	if o.Target == nil || (o.Violation != nil && o.Violation.Condition == v1alpha1.ConditionTargetFound) {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonNotChecked, "the target has to be found first"
		return c
	}
	target := o.Target
	name := target.Subscription.Name
	switch sharers := sharers(o); {
	case target.NeverAcknowledges:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonNeverAcknowledged
		c.Message = "the window function never acknowledges messages, so its backlog only grows and says nothing about its " +
			"work: " + acknowledging(target)
	case len(sharers) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonSubscriptionShared
		c.Message = fmt.Sprintf(
			"subscription %q is consumed by %s too, so each takes a part of one backlog and would be scaled for all of it: "+
				"%s", name, strings.Join(sharers, ", "), ownSubscription(o))
	case o.Reading == nil && o.Unknown != nil && !errors.Is(o.Unknown, backlog.ErrNoData):
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonPending, "what the broker reports is not "+
			"known now, "+
			"see condition BacklogKnown"
	case o.Reading == nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonPending, "the broker has not reported the "+
			"subscription yet"
	case o.Reading.Type == backlog.NoType || o.Reading.Type == "":
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNoConsumerSeen
		c.Message = "no consumer has connected to the subscription since the broker loaded its topics"
	case o.Reading.Type != target.SubscriptionType || o.Reading.OtherType != "":
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonSubscriptionDiffers
		c.Message = typeDiffers(o)
	case o.surplus() > 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonSurplusConsumers
		c.Message = surplusConsumers(o)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonVerified
		c.Message = fmt.Sprintf("the broker reports subscription %q of type %s", name, o.Reading.Type)
	}
	c.Message = Shorten(c.Message, maxMessage)
	return c
}

// promises is who says what subscription it is.
func promises(o outcome) string {
	if o.Policy.Spec.Subscription != nil {
		return "spec.subscription"
	}
	return o.Target.Ref.Kind + " " + o.Target.Ref.Name
}

// typeDiffers says that the broker reports another type than was promised, or more than one.
func typeDiffers(o outcome) string {
	target, reading := o.Target, o.Reading
	apart := "give the target a spec.subscriptionName that no other workload consumes"
	if o.Policy.Spec.Subscription != nil {
		apart = "correct spec.subscription, or have the replicas subscribe under a name that no other workload uses"
	}
	promise := fmt.Sprintf("%s promises subscription %q of type %s and the broker reports %s", promises(o),
		target.Subscription.Name, target.SubscriptionType, reading.Type)
	if reading.Type != target.SubscriptionType {
		return fmt.Sprintf("%s: restart the replicas if they run an older configuration or image, or %s", promise, apart)
	}
	return fmt.Sprintf("%s on some topics or partitions and %s on others, which refuse its replicas: disconnect the "+
		"other consumers there, or %s", promise, reading.OtherType, apart)
}

// surplus is how many consumers the subscription has beside the target's own; 0 while none was seen for long enough.
func (o outcome) surplus() int32 {
	if o.decision == nil {
		return 0
	}
	return o.decision.Surplus
}

// surplusConsumers says that the subscription has more consumers than the target's pods open.
func surplusConsumers(o outcome) string {
	return fmt.Sprintf("subscription %q has %d consumers beside those of %s, which may leave at any time and are not "+
		"counted on: disconnect them or give them a subscription of their own, or set "+
		"spec.subscription.consumersPerReplica to how many each replica opens",
		o.Target.Subscription.Name, o.surplus(), Name(o.Policy.Spec))
}

// ownSubscription is what gives each workload a subscription of its own.
func ownSubscription(o outcome) string {
	if o.Policy.Spec.Subscription != nil {
		return "have each subscribe under a name of its own, and correct spec.subscription.name"
	}
	return "give each a spec.subscriptionName of its own"
}

// maxMessage is the most bytes that the API takes as the message of a condition.
const maxMessage = 32 << 10

// acknowledging is what the user of a window function is to do, in the words of what it was made with: Function Mesh or
// Pulsar's function worker.
func acknowledging(target *Target) string {
	if target.Scaling == ByWorker || target.Ref.Kind == string(kindStatefulSet) {
		return "update the function with windowConfig.processingGuarantees ATLEAST_ONCE, or with processingGuarantees " +
			"ATLEAST_ONCE"
	}
	return "set spec.windowConfig.processingGuarantees to ATLEAST_ONCE, or spec.processingGuarantee to atleast_once"
}

// sharers are all others that consume the subscription: objects in Kubernetes, and what else consumers say they are.
func sharers(o outcome) []string {
	all := slices.Clone(o.Sharers)
	if o.Reading == nil {
		return all
	}
	for _, component := range o.Reading.Components {
		// Objects that Kubernetes knows name themselves to the broker too: then the broker adds nothing.
		if component != o.Target.Component && len(o.Sharers) == 0 {
			all = append(all, "the function "+component)
		}
	}
	return all[:min(len(all), maxSharers)]
}

// maxSharers bounds how many are named.
const maxSharers = 10
