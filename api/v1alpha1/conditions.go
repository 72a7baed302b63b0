// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. Ready summarises the others and is computed in one place.
const (
	// ConditionReady is True when the target follows the decisions, or would in mode Recommend; of an
	// AutoscalingPolicySet, when all its policies are Ready.
	ConditionReady = "Ready"
	// ConditionTargetFound is True when the target exists and can be scaled by this policy.
	ConditionTargetFound = "TargetFound"
	// ConditionBacklogKnown is True when Pulsar answered lately for every input topic.
	ConditionBacklogKnown = "BacklogKnown"
	// ConditionSubscriptionVerified is True when the broker reports the subscription that the target's fields promise, and
	// nothing else consumes it. It is a warning: Ready does not depend on it.
	ConditionSubscriptionVerified = "SubscriptionVerified"
	// ConditionScalesWithoutRestart is False when a change of the number of replicas restarts those that run, or disturbs
	// what is learned of them. It is a warning: Ready does not depend on it.
	ConditionScalesWithoutRestart = "ScalesWithoutRestart"
	// ConditionAutoscalerApplied is True when our HorizontalPodAutoscaler is as it should be.
	ConditionAutoscalerApplied = "AutoscalerApplied"
	// ConditionScalingActive mirrors the condition of the HorizontalPodAutoscaler.
	ConditionScalingActive = "ScalingActive"
)

// Reasons of more than one condition.
const (
	// ReasonNotChecked: an earlier condition has to be True first.
	ReasonNotChecked = "NotChecked"
	// ReasonPending: what the condition is about is under way.
	ReasonPending = "Pending"
)

// Reasons of condition Ready. Its other reasons are those of the condition that it summarises.
const (
	// ReasonScaling: the target follows the decisions.
	ReasonScaling = "Scaling"
	// ReasonScaledToZero: the target has no replicas, and gets some when there is something to do.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonRecommending: in mode Recommend decisions are shown and not carried out.
	ReasonRecommending = "Recommending"
	// ReasonOff: in mode Off nothing is measured, decided or changed.
	ReasonOff = "Off"
)

// Reasons of condition TargetFound.
const (
	// ReasonFound: the target exists and can be scaled.
	ReasonFound = "Found"
	// ReasonTargetKindUnsupported: objects of this kind cannot be scaled.
	ReasonTargetKindUnsupported = "TargetKindUnsupported"
	// ReasonTargetNotFound: the target does not exist.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonTargetInvalid: the target does not say what it consumes.
	ReasonTargetInvalid = "TargetInvalid"
	// ReasonOwnedByAnotherController: the owner of the StatefulSet sets its replicas.
	ReasonOwnedByAnotherController = "OwnedByAnotherController"
	// ReasonReplicasUnset: the target has no spec.replicas to begin from.
	ReasonReplicasUnset = "ReplicasUnset"
	// ReasonOwnedByFunctionMesh: a FunctionMesh sets the replicas of the target.
	ReasonOwnedByFunctionMesh = "OwnedByFunctionMesh"
	// ReasonUnmanaged: the operator was told to leave the target alone.
	ReasonUnmanaged = "Unmanaged"
	// ReasonStopped: the function was stopped, and scaling it would start some of its instances.
	ReasonStopped = "Stopped"
	// ReasonCredentialsMissing: what Pulsar is to be asked with cannot be read.
	ReasonCredentialsMissing = "CredentialsMissing"
)

// Reasons of condition BacklogKnown: why there is no reading.
const (
	// ReasonMeasured: Pulsar answers for every input topic.
	ReasonMeasured = "Measured"
	// ReasonStale: the last good answer is too old.
	ReasonStale = "Stale"
	// ReasonNotTracked: the subscription is not polled yet.
	ReasonNotTracked = "NotTracked"
	// ReasonNoDataYet: the first answer is under way.
	ReasonNoDataYet = "NoDataYet"
	// ReasonPartialAnswer: some topics are known and some are not.
	ReasonPartialAnswer = "PartialAnswer"
	// ReasonTopicNotFound: an input topic does not exist.
	ReasonTopicNotFound = "TopicNotFound"
	// ReasonSubscriptionNotFound: a topic has no such subscription.
	ReasonSubscriptionNotFound = "SubscriptionNotFound"
	// ReasonFunctionNotFound: the function worker has no such function.
	ReasonFunctionNotFound = "FunctionNotFound"
	// ReasonNoFunctionWorker: the cluster runs no function worker.
	ReasonNoFunctionWorker = "NoFunctionWorker"
	// ReasonCredentialsRefused: Pulsar does not accept the credentials.
	ReasonCredentialsRefused = "CredentialsRefused"
	// ReasonPermissionMissing: the role lacks a permission.
	ReasonPermissionMissing = "PermissionMissing"
	// ReasonPulsarUnreachable: no connection to Pulsar.
	ReasonPulsarUnreachable = "PulsarUnreachable"
	// ReasonPulsarUnavailable: Pulsar answers that it cannot serve now.
	ReasonPulsarUnavailable = "PulsarUnavailable"
	// ReasonUnexpectedAnswer: the answer is none that Pulsar gives.
	ReasonUnexpectedAnswer = "UnexpectedAnswer"
	// ReasonUnsupported: this Pulsar does not tell.
	ReasonUnsupported = "Unsupported"
	// ReasonUnknown: none of the others.
	ReasonUnknown = "Unknown"
)

// Reasons of condition SubscriptionVerified.
const (
	// ReasonVerified: the broker reports what the target's fields promise.
	ReasonVerified = "AsExpected"
	// ReasonNoConsumerSeen: the subscription has had no consumer since the broker loaded its topics.
	ReasonNoConsumerSeen = "NoConsumerSeen"
	// ReasonNeverAcknowledged: a window function leaves its messages in the backlog.
	ReasonNeverAcknowledged = "NeverAcknowledged"
	// ReasonSubscriptionShared: another workload consumes the same subscription.
	ReasonSubscriptionShared = "SubscriptionShared"
	// ReasonSurplusConsumers: more consumers are connected than the target has pods for.
	ReasonSurplusConsumers = "SurplusConsumers"
	// ReasonSubscriptionDiffers: the broker reports another subscription type.
	ReasonSubscriptionDiffers = "SubscriptionTypeDiffers"
)

// Reasons of condition ScalesWithoutRestart.
const (
	// ReasonUndisturbed: a change of the number of replicas leaves those that run alone, as far as is known.
	ReasonUndisturbed = "Undisturbed"
	// ReasonPreciseParallelism: every change of the number of replicas changes the pod template.
	ReasonPreciseParallelism = "PreciseParallelism"
	// ReasonSecretsInRandomOrder: some changes of the number of replicas change the pod template.
	ReasonSecretsInRandomOrder = "SecretsInRandomOrder"
	// ReasonRestartUndone: the next change undoes a restart by hand, which restarts all replicas again.
	ReasonRestartUndone = "RestartUndone"
	// ReasonVerticalAutoscaler: a VerticalPodAutoscaler changes what one replica can do.
	ReasonVerticalAutoscaler = "VerticalPodAutoscaler"
	// ReasonRolloutPaused: a change of the number of replicas would release a rollout that was paused.
	ReasonRolloutPaused = "RolloutPaused"
)

// Reasons of condition AutoscalerApplied.
const (
	// ReasonApplied: our autoscaler is as it should be.
	ReasonApplied = "Applied"
	// ReasonToleranceUnsupported: the API server drops the tolerance of a HorizontalPodAutoscaler.
	ReasonToleranceUnsupported = "ToleranceUnsupported"
	// ReasonRecommendOnly: in mode Recommend there is no autoscaler.
	ReasonRecommendOnly = "RecommendOnly"
	// ReasonDirect: the controller writes the number of replicas itself.
	ReasonDirect = "Direct"
	// ReasonSwitchedOff: replicas were set to 0 by hand, which switches scaling off.
	ReasonSwitchedOff = "SwitchedOff"
	// ReasonScaleFailed: the number of replicas could not be written.
	ReasonScaleFailed = "ScaleFailed"
	// ReasonApplyFailed: a write of our autoscaler failed and is tried again.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonRefused: the API server refuses our autoscaler.
	ReasonRefused = "ApplyRefused"
	// ReasonFieldConflict: another manager owns a field of our autoscaler.
	ReasonFieldConflict = "FieldConflict"
	// ReasonOlderPolicy: another policy on the same target takes precedence.
	ReasonOlderPolicy = "OlderPolicy"
	// ReasonNameTaken: another controller's object has the name of our autoscaler.
	ReasonNameTaken = "AutoscalerNameTaken"
	// ReasonNameClash: Function Mesh would delete an autoscaler of this name.
	ReasonNameClash = "AutoscalerNameClash"
	// ReasonKEDAMissing: the actuator is KEDA, and KEDA is not installed.
	ReasonKEDAMissing = "KEDAMissing"
	// ReasonScalerUnknown: the adapter was not told where KEDA reaches the scaler.
	ReasonScalerUnknown = "ScalerUnknown"
	// ReasonOtherScaledObject: the target has another ScaledObject, and KEDA admits one.
	ReasonOtherScaledObject = "OtherScaledObject"
	// ReasonScaledObjectStays: our ScaledObject was deleted, and KEDA keeps its finalizer.
	ReasonScaledObjectStays = "ScaledObjectStays"
)

// Reasons of condition AutoscalerApplied about conflicting autoscalers.
const (
	// ReasonFunctionHasOwnAutoscaler: maxReplicas has Function Mesh run an autoscaler of its own.
	ReasonFunctionHasOwnAutoscaler = "FunctionHasOwnAutoscaler"
	// ReasonAutoscalerOrphaned: the autoscaler of Function Mesh is still there although maxReplicas is gone.
	ReasonAutoscalerOrphaned = "AutoscalerOrphaned"
	// ReasonConflictingAutoscaler: another autoscaler scales the target.
	ReasonConflictingAutoscaler = "ConflictingAutoscaler"
	// ReasonTakingOver: a conflicting autoscaler was suspended and is still there.
	ReasonTakingOver = "TakingOver"
	// ReasonTakeOverFailed: suspending a conflicting autoscaler failed and is tried again.
	ReasonTakeOverFailed = "TakeOverFailed"
	// ReasonRecreated: a conflicting autoscaler was suspended, and its writer recreated it.
	ReasonRecreated = "Recreated"
	// ReasonRestoring: what was suspended is being restored.
	ReasonRestoring = "Restoring"
)

// Reasons of condition ScalingActive. Its other reasons are the HorizontalPodAutoscaler's and KEDA's.
const (
	// ReasonPaused: our ScaledObject was paused by an annotation.
	ReasonPaused = "ScaledObjectPaused"
	// ReasonFallback: KEDA gets no answer of the scaler, and keeps the replicas.
	ReasonFallback = "Fallback"
)

// Condition types of an AutoscalingPolicySet, besides Ready and TargetFound, which is True when its selector matches.
const (
	// ConditionPoliciesApplied is True when each object that the set governs has the policy that the template says.
	ConditionPoliciesApplied = "PoliciesApplied"
)

// Reasons of an AutoscalingPolicySet's conditions.
const (
	// ReasonNothingMatches: the selector matches no object.
	ReasonNothingMatches = "NothingMatches"
	// ReasonSelectorInvalid: the selector cannot be read.
	ReasonSelectorInvalid = "SelectorInvalid"
	// ReasonAllReady: all policies of the set are Ready.
	ReasonAllReady = "AllReady"
	// ReasonNotGoverned: the set governs nothing that its selector matches.
	ReasonNotGoverned = "NotGoverned"
	// ReasonPolicyNameTaken: a policy with another owner has the name of one that is to be created.
	ReasonPolicyNameTaken = "PolicyNameTaken"
)

// Reasons of objects that an AutoscalingPolicySet matches and does not govern, besides OwnedByFunctionMesh.
const (
	// ReasonNamedByPolicy: an AutoscalingPolicy names the object.
	ReasonNamedByPolicy = "NamedByPolicy"
	// ReasonOlderPolicySet: an older AutoscalingPolicySet selects the object.
	ReasonOlderPolicySet = "OlderPolicySet"
	// ReasonNothingToScale: the object consumes nothing from Pulsar.
	ReasonNothingToScale = "NothingToScale"
)
