// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

// statusCheck reads the verdict of the adapter in the status of a policy. No text is parsed.
type statusCheck struct {
	policy *v1alpha1.AutoscalingPolicy
	// mode is that in which the user wants the policy, which is not that of the policy of -f.
	mode v1alpha1.Mode
}

func (c statusCheck) condition(name string) *metav1.Condition {
	return meta.FindStatusCondition(c.policy.Status.Conditions, name)
}

// reason of a condition; empty without it.
func (c statusCheck) reason(condition string) string {
	if found := c.condition(condition); found != nil {
		return found.Reason
	}
	return ""
}

// of is a check that is False in a condition with a result.
func (c statusCheck) of(check, condition string, isFalse checkResult) checked {
	found := c.condition(condition)
	if found == nil {
		return checked{check, resultUnknown, v1alpha1.ReasonNotChecked, "the status has no condition " + condition + " yet"}
	}
	result := resultUnknown
	switch found.Status {
	case metav1.ConditionTrue:
		result = resultOK
	case metav1.ConditionFalse:
		result = isFalse
	case metav1.ConditionUnknown:
	}
	return checked{check, result, found.Reason, found.Message}
}

// checks are those of the target and of Pulsar. If the adapter has not read the policy, there is one.
func (c statusCheck) checks() []checked {
	first := c.adapter()
	if first.Result == resultError {
		return []checked{first}
	}
	list := []checked{
		first, c.of("target", v1alpha1.ConditionTargetFound, resultError),
		c.of("restarts", v1alpha1.ConditionScalesWithoutRestart, resultWarning), c.autoscalers(),
	}
	if c.condition(v1alpha1.ConditionScalingActive) != nil {
		list = append(list, c.of("scaling", v1alpha1.ConditionScalingActive, resultError))
	}
	list = append(list, c.pulsar()...)
	return append(list, c.partitions(), c.limits(),
		c.of("start time", v1alpha1.ConditionObjectiveAchievable, resultWarning), c.replicas(),
		c.of("objective", v1alpha1.ConditionObjectiveMet, resultWarning))
}

func (c statusCheck) adapter() checked {
	const check = "adapter"
	ready, seen := c.condition(v1alpha1.ConditionReady), c.policy.Status.ObservedGeneration
	switch {
	case ready == nil:
		return checked{
			check, resultError, v1alpha1.ReasonPending,
			"the policy has no status: run kubectl pap check --install",
		}
	case seen == 0:
		return checked{check, resultError, ready.Reason, ready.Message + ": run kubectl pap check --install"}
	case ready.Reason == v1alpha1.ReasonReconcileFailed:
		return checked{check, resultError, ready.Reason, ready.Message}
	case seen != c.policy.Generation:
		return checked{check, resultWarning, v1alpha1.ReasonPending, fmt.Sprintf(
			"the checks below are of generation %d of the spec, which has generation %d by now: wait for the adapter", seen,
			c.policy.Generation)}
	case served.Paused(c.policy):
		found := checked{check, resultWarning, ready.Reason, ready.Message}
		if c.policy.Spec.Mode == v1alpha1.ModePaused { // else the message has the command that resumes all policies
			found.Message += "; to resume this one, set mode to Recommend or Auto"
		}
		return found
	default:
		return checked{check, resultOK, "", fmt.Sprintf("it has read generation %d of the policy", seen)}
	}
}

// autoscalers is whether another autoscaler or policy scales the target.
func (c statusCheck) autoscalers() checked {
	found := c.of("autoscalers", v1alpha1.ConditionAutoscalerApplied, resultError)
	switch found.Reason {
	case v1alpha1.ReasonApplyFailed, v1alpha1.ReasonScaleFailed:
		found.Result = resultError
	case v1alpha1.ReasonToleranceUnsupported, v1alpha1.ReasonActuationSlow:
		found.Result = resultWarning
	case v1alpha1.ReasonRecommendOnly, v1alpha1.ReasonPaused:
	default:
		if c.policy.Spec.Mode != v1alpha1.ModeRecommend || found.Result != resultOK {
			break
		}
		found.Result = inAuto(c.mode) // the reason is why the policy would not scale in mode Auto
	}
	return found
}

// inAuto is the result of what keeps a policy from scaling in mode Auto.
func inAuto(wanted v1alpha1.Mode) checkResult {
	if wanted.IsAuto() {
		return resultError
	}
	return resultWarning
}

// The checks of Pulsar, in the order in which each needs the earlier ones.
const (
	checkPulsar = iota
	checkCredentials
	checkTopics
	checkSubscription
)

// pulsarCheck is the first check that a reason of condition BacklogKnown concerns.
func pulsarCheck(reason string) int {
	switch reason {
	case v1alpha1.ReasonCredentialsRefused, v1alpha1.ReasonPermissionMissing:
		return checkCredentials
	case v1alpha1.ReasonTopicNotFound, v1alpha1.ReasonTooManyTopics, v1alpha1.ReasonPartialAnswer,
		v1alpha1.ReasonFunctionNotFound:
		return checkTopics
	case v1alpha1.ReasonSubscriptionNotFound:
		return checkSubscription
	default:
		return checkPulsar
	}
}

// pulsar are the checks of Pulsar, which one condition reports.
func (c statusCheck) pulsar() []checked {
	list := []checked{
		{"pulsar", resultOK, "", "it answers"},
		{"credentials", resultOK, "", "Pulsar accepts them, and their role may read the topics"},
		{"topics", resultOK, "", "they exist"},
		c.of("subscription", v1alpha1.ConditionSubscriptionVerified, resultWarning),
	}
	known := c.of("", v1alpha1.ConditionBacklogKnown, resultError)
	if known.Result == resultOK {
		list[checkTopics].Message = known.Message
		if known.Reason == v1alpha1.ReasonPushRefused {
			list[checkTopics].Result, list[checkTopics].Reason = resultWarning, known.Reason
		}
		return list
	}
	failed := pulsarCheck(known.Reason)
	for i := range list {
		check := list[i].Check
		switch {
		case i == failed:
			list[i] = known
			list[i].Check = check
		case i > failed, failed == checkCredentials: // refused before a request, or by the answer to one
			list[i] = checked{check, resultUnknown, v1alpha1.ReasonNotChecked, "it is checked once " + list[failed].Check +
				" is ok"}
		}
	}
	return list
}

// partitions compares those of a Failover subscription with maxReplicas.
func (c statusCheck) partitions() checked {
	const check = "partitions"
	signals, most := c.policy.Status.Signals, c.policy.Spec.MaxReplicas
	typeUnknown := c.reason(v1alpha1.ConditionSubscriptionVerified) == v1alpha1.ReasonNoConsumerSeen
	switch {
	case signals == nil:
		return checked{check, resultUnknown, v1alpha1.ReasonNotChecked, "it is checked once the backlog is known"}
	case signals.UsefulReplicas == nil && typeUnknown:
		return checked{
			check, resultUnknown, v1alpha1.ReasonNoConsumerSeen,
			"the subscription type is known once a consumer has connected",
		}
	case signals.UsefulReplicas == nil:
		return checked{check, resultOK, "", "the subscription type does not limit the replicas to their number"}
	case *signals.UsefulReplicas < most:
		return checked{check, resultWarning, v1alpha1.ReasonTooFewPartitions, fmt.Sprintf(
			"the subscription has messages for at most %d replicas, and maxReplicas is %d: %s, or lower maxReplicas",
			*signals.UsefulReplicas, most, cmp.Or(typeFix(c.policy), "add partitions"))}
	default:
		return checked{check, resultOK, "", fmt.Sprintf("they are enough for %d replicas", most)}
	}
}

// typeFix is how more replicas get messages of a subscription with a type that partitions do not help, as when the
// broker reports Exclusive; empty if they do.
func typeFix(p *v1alpha1.AutoscalingPolicy) string {
	verified := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSubscriptionVerified)
	switch subscription := p.Spec.Subscription; {
	case verified != nil && verified.Reason == v1alpha1.ReasonSubscriptionDiffers:
		return "have the replicas subscribe with the type that is promised (condition SubscriptionVerified)"
	case subscription != nil && subscription.Type == v1alpha1.SubscriptionExclusive:
		return "use Shared, Key_Shared or Failover"
	case subscription != nil && subscription.Type == v1alpha1.SubscriptionStream:
		return "use QueueConsumers (type Shared)"
	default:
		return ""
	}
}

// limits is whether a limit keeps replicas from what the load needs. Its reasons are few, and say what the fix is.
func (c statusCheck) limits() checked {
	const check = "limits"
	limited := c.condition(v1alpha1.ConditionScalingLimited)
	if limited == nil || limited.Status != metav1.ConditionTrue || limited.Reason == v1alpha1.ReasonTooFewReplicas {
		return c.of(check, v1alpha1.ConditionScalingLimited, resultOK)
	}
	external := "find what the target waits for, such as a database"
	if d := c.policy.Status.Decision; d != nil && d.Hold != nil && d.Hold.Reason == decide.HoldDispatchLimited {
		external = "acknowledge messages in the function, or raise the limit of Pulsar"
	}
	fix := map[string]string{
		v1alpha1.ReasonTooManyReplicas:  "raise maxReplicas",
		v1alpha1.ReasonTooFewPartitions: cmp.Or(typeFix(c.policy), "add partitions"),
		v1alpha1.ReasonExternalLimit:    external,
	}
	return checked{check, resultWarning, limited.Reason, limited.Message + ": " + fix[limited.Reason]}
}

// replicas is whether the target follows the decisions, and replicas start. Ready has other reasons from earlier
// conditions.
func (c statusCheck) replicas() checked {
	const check = "replicas"
	if served.Paused(c.policy) {
		return checked{check, resultUnknown, v1alpha1.ReasonPaused, "nothing is decided while the policy is paused"}
	}
	switch found, off := c.of(check, v1alpha1.ConditionReady, resultError), served.SwitchedOff(c.policy); {
	case found.Result == resultOK && off != "": // in mode Recommend
		return checked{check, inAuto(c.mode), v1alpha1.ReasonSwitchedOff, off}
	case found.Result == resultOK,
		found.Reason == v1alpha1.ReasonNotFollowed, found.Reason == v1alpha1.ReasonReplicasNotStarting:
		return found
	default:
		return checked{check, resultUnknown, v1alpha1.ReasonNotChecked, "they are checked once the checks above are ok"}
	}
}

// defaultQueue is receiverQueueSize of Pulsar's clients where it is not set.
const defaultQueue = 1000

// receiveQueue compares the work in a full receive queue with the objective: another replica cannot take messages from
// it.
func (c checker) receiveQueue(ctx context.Context, p *v1alpha1.AutoscalingPolicy) checked {
	const check = "receive queue"
	if p.Status.Capacity == nil {
		return checked{
			check, resultUnknown, v1alpha1.ReasonPending,
			"it is checked once the adapter has learned what a replica processes",
		}
	}
	size, result := int64(defaultQueue), resultUnknown
	holds := "it could not be read; Pulsar's default of %d would be"
	if definesQueue(p.Spec.ScaleTargetRef) {
		var err error
		if size, err = c.queueOf(ctx, p); err != nil {
			return unreadable(check, c.readingTarget(p), err)
		}
		result, holds = resultOK, "receiverQueueSize %d, the largest of the target, is"
	}
	objective := decide.LatencyObjective(p.Spec)
	capacity := p.Status.Capacity.MessagesPerSecond.AsApproximateFloat64()
	work := time.Duration(float64(size) / max(capacity, 1e-3) * float64(time.Second))
	found := checked{check, result, "", fmt.Sprintf(holds+" %s of a replica's work for each partition, and "+
		"latencyObjective is %s", size, short(work.Seconds()), short(objective.Seconds()))}
	if work > objective {
		if result == resultOK {
			found.Result = resultWarning
		}
		found.Message += fmt.Sprintf(": messages in the queue wait longer, and no new replica gets them: %s to %.0f divided "+
			"by the number of partitions, which is %d s of a replica's work", report.QueueField(p.Spec),
			max(1, math.Ceil(report.QueuedSeconds*capacity)), report.QueuedSeconds)
	}
	return found
}

// definesQueue reports whether an object of Function Mesh defines consumers. A Source does not.
func definesQueue(ref v1alpha1.ScaleTargetRef) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group == cluster.FunctionMeshGroup &&
		ref.Kind != cluster.KindSource && ref.Component.Kind != v1alpha1.WorkloadSource
}

// readingTarget is the permission to read the target.
func (c checker) readingTarget(p *v1alpha1.AutoscalingPolicy) string {
	ref := p.Spec.ScaleTargetRef
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	resource := kind.GroupKind().String()
	if mapping, err := c.kube.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
		resource = mapping.Resource.GroupResource().String()
	}
	return fmt.Sprintf("get on %s in namespace %s", resource, p.Namespace)
}

// target is the object that scaleTargetRef names.
func (c checker) target(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (*unstructured.Unstructured, error) {
	ref := p.Spec.ScaleTargetRef
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(ref.APIVersion)
	object.SetKind(ref.Kind)
	return object, c.kube.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ref.Name}, object)
}

// queueOf is the largest receive queue of the target's topics.
func (c checker) queueOf(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (int64, error) {
	object, err := c.target(ctx, p)
	if err != nil {
		return 0, err
	}
	if ref := p.Spec.ScaleTargetRef; ref.Component.Name != "" {
		entry, err := target.FindEntry(target.Decode(object), ref.Component)
		if err != nil {
			return 0, err
		}
		return largestQueue(entry.FieldsIn(object))
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return 0, err
	}
	return largestQueue(spec)
}

// inputs are the topics of a Function or Sink.
//
// Source: Function Mesh v0.27.2, api/compute/v1alpha1/common.go.
type inputs struct {
	Input struct {
		Topics      []string `json:"topics"`
		SourceSpecs map[string]struct {
			ReceiverQueueSize *int64 `json:"receiverQueueSize"`
		} `json:"sourceSpecs"`
	} `json:"input"`
}

// largestQueue of the topics that a Function or Sink consumes.
func largestQueue(spec map[string]any) (int64, error) {
	var decoded inputs
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &decoded); err != nil {
		return 0, err
	}
	largest := int64(0)
	for _, source := range decoded.Input.SourceSpecs {
		largest = max(largest, ptr.Deref(source.ReceiverQueueSize, defaultQueue))
	}
	for _, topic := range decoded.Input.Topics {
		if _, isSource := decoded.Input.SourceSpecs[topic]; !isSource {
			largest = max(largest, defaultQueue)
		}
	}
	return cmp.Or(largest, defaultQueue), nil // a pattern, or sources of another form, have no size
}
