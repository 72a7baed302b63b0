// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of a policy. Ready summarises TargetFound, BacklogKnown, AutoscalerApplied and ScalingActive, and
// whether the decided replicas run. It is computed in one place; the others inform and warn.
const (
	ConditionReady                = "Ready"                // the autoscaler does its job: the decided replicas run
	ConditionObjectiveMet         = "ObjectiveMet"         // messages meet the latency objective
	ConditionScalingLimited       = "ScalingLimited"       // a bound limits replicas below or above the load's need
	ConditionTargetFound          = "TargetFound"          // the target exists and can be scaled by this policy
	ConditionBacklogKnown         = "BacklogKnown"         // Pulsar answered recently for every input topic
	ConditionAutoscalerApplied    = "AutoscalerApplied"    // our HorizontalPodAutoscaler or ScaledObject is up to date
	ConditionScalingActive        = "ScalingActive"        // that autoscaler reports that it scales
	ConditionSubscriptionVerified = "SubscriptionVerified" // the broker reports the expected subscription
	ConditionScalesWithoutRestart = "ScalesWithoutRestart" // a change of replicas restarts no running one
	ConditionObjectiveAchievable  = "ObjectiveAchievable"  // new replicas can consume within the latency objective
	ConditionStalled              = "Stalled"              // only a user can fix another condition; absent otherwise
)

// Reasons of more than one condition.
const (
	ReasonNotChecked = "NotChecked" // an earlier condition has to be True first
	ReasonPending    = "Pending"    // the condition waits for an operation in progress
)

// Reasons of condition Ready. Its other reasons are those of the condition that it summarises.
const (
	ReasonScaling      = "Scaling"      // the target follows the decisions
	ReasonScaledToZero = "ScaledToZero" // the target has no replicas until there is a backlog
	ReasonRecommending = "Recommending" // in mode Recommend decisions are shown and not carried out
	ReasonPaused       = "Paused"       // the backlog is measured, and nothing is decided or changed

	ReasonReconcileFailed     = "ReconcileFailed"     // a decision's input could not be read, and it is retried
	ReasonNotFollowed         = "NotFollowed"         // the operator or the autoscaler does not carry out the decision
	ReasonReplicasNotStarting = "ReplicasNotStarting" // pods of the decided replicas are missing, pending or crash
)

// Reasons of condition ObjectiveMet. While messages miss the objective, its other reasons are that of Ready if Ready is
// not True, and those of ScalingLimited.
const (
	ReasonWithinObjective   = "WithinObjective"   // messages meet the objective
	ReasonDispatchBlocked   = "DispatchBlocked"   // too many messages are not acknowledged
	ReasonDispatchThrottled = "DispatchThrottled" // a dispatch rate limit of Pulsar throttles messages
	ReasonMessagesFail      = "MessagesFail"      // replicas do not process the messages that they receive
	ReasonReplicasStarting  = "ReplicasStarting"  // replicas were decided that do not consume yet
	ReasonReplicasStarved   = "ReplicasStarved"   // others hold nearly all messages in their receive queues
	ReasonReplicasHeld      = "ReplicasHeld"      // status.decision.hold keeps the replicas
	ReasonCatchingUp        = "CatchingUp"        // replicas drain the backlog
)

// Reasons of condition ScalingLimited; the first three are those of a HorizontalPodAutoscaler.
const (
	ReasonDesiredWithinRange = "DesiredWithinRange" // nothing limits the desired replicas
	ReasonTooManyReplicas    = "TooManyReplicas"    // more than maxReplicas are needed
	ReasonTooFewReplicas     = "TooFewReplicas"     // fewer than minReplicas are needed
	ReasonTooFewPartitions   = "TooFewPartitions"   // more replicas are needed than Failover has partitions
	ReasonExternalLimit      = "ExternalLimit"      // more replicas would process no more messages
)

// Reasons of condition TargetFound.
const (
	ReasonFound                    = "Found"                    // the target exists and can be scaled
	ReasonTargetKindUnsupported    = "TargetKindUnsupported"    // objects of this kind cannot be scaled
	ReasonTargetNotFound           = "TargetNotFound"           // the target does not exist
	ReasonTargetInvalid            = "TargetInvalid"            // the target does not define what it consumes
	ReasonOwnedByAnotherController = "OwnedByAnotherController" // the owner of the StatefulSet sets its replicas
	ReasonReplicasUnset            = "ReplicasUnset"            // the target has no spec.replicas to start from
	ReasonOwnedByFunctionMesh      = "OwnedByFunctionMesh"      // a FunctionMesh sets the replicas of the target
	ReasonChildMissing             = "ChildMissing"             // Function Mesh has not created the component yet
	ReasonMeshBlocked              = "FunctionMeshBlocked"      // Function Mesh stops at an earlier entry of the mesh
	ReasonUnmanaged                = "Unmanaged"                // an annotation makes the operator ignore the target
	ReasonStopped                  = "Stopped"                  // scaling a stopped function would start instances
	ReasonCredentialsMissing       = "CredentialsMissing"       // the credentials for Pulsar cannot be read
)

// Reasons of condition BacklogKnown: why there is no reading.
const (
	ReasonMeasured             = "Measured"             // Pulsar answers for every input topic
	ReasonPushRefused          = "PushRefused"          // as Measured, and brokers refuse to report the first message
	ReasonStale                = "Stale"                // the last good answer is too old
	ReasonNotTracked           = "NotTracked"           // the subscription is not polled yet
	ReasonNoDataYet            = "NoDataYet"            // the first answer is under way
	ReasonPartialAnswer        = "PartialAnswer"        // some topics are known and some are not
	ReasonTopicNotFound        = "TopicNotFound"        // an input topic does not exist
	ReasonSubscriptionNotFound = "SubscriptionNotFound" // a topic has no such subscription
	ReasonFunctionNotFound     = "FunctionNotFound"     // the function worker has no such function
	ReasonNoFunctionWorker     = "NoFunctionWorker"     // the cluster runs no function worker
	ReasonCredentialsRefused   = "CredentialsRefused"   // Pulsar does not accept the credentials
	ReasonHostNotAllowed       = "HostNotAllowed"       // the address is not on --allowed-pulsar-hosts
	ReasonPermissionMissing    = "PermissionMissing"    // the role lacks a permission
	ReasonPulsarUnreachable    = "PulsarUnreachable"    // no connection to Pulsar
	ReasonPulsarUnavailable    = "PulsarUnavailable"    // Pulsar reports that it cannot answer now
	ReasonUnexpectedAnswer     = "UnexpectedAnswer"     // the answer is not Pulsar's
	ReasonImplausibleAnswer    = "ImplausibleAnswer"    // the answer contradicts earlier ones about the topic
	ReasonUnsupported          = "Unsupported"          // the input cannot be read from Pulsar
	ReasonTooManyTopics        = "TooManyTopics"        // more topics than a subscription or a namespace may have
	ReasonUnknown              = "Unknown"              // none of the others
)

// Reasons of condition SubscriptionVerified.
const (
	ReasonVerified            = "AsExpected"              // the broker reports the subscription of the target's fields
	ReasonNoConsumerSeen      = "NoConsumerSeen"          // no consumer since the broker loaded the topics
	ReasonNeverAcknowledged   = "NeverAcknowledged"       // a window function leaves its messages in the backlog
	ReasonSubscriptionShared  = "SubscriptionShared"      // another workload consumes the same subscription
	ReasonSurplusConsumers    = "SurplusConsumers"        // more consumers are connected than the target has pods
	ReasonMissingConsumers    = "MissingConsumers"        // running replicas open fewer consumers than the policy says
	ReasonSubscriptionDiffers = "SubscriptionTypeDiffers" // the broker reports another subscription type
)

// Reasons of condition ScalesWithoutRestart.
const (
	ReasonUndisturbed          = "Undisturbed"           // a change of replicas restarts none, as far as is known
	ReasonPreciseParallelism   = "PreciseParallelism"    // every change of replicas changes the pod template
	ReasonSecretsInRandomOrder = "SecretsInRandomOrder"  // some changes of replicas change the pod template
	ReasonRestartUndone        = "RestartUndone"         // the next change of replicas undoes a restart by hand
	ReasonGracePeriodTooShort  = "GracePeriodTooShort"   // removed replicas cannot finish their call
	ReasonVerticalAutoscaler   = "VerticalPodAutoscaler" // a VerticalPodAutoscaler changes the capacity of a replica
	ReasonRolloutPaused        = "RolloutPaused"         // a change of replicas would resume a paused rollout
)

// Reasons of condition ObjectiveAchievable.
const (
	ReasonAchievable        = "Achievable"        // new replicas consume within the latency objective
	ReasonObjectiveTooShort = "ObjectiveTooShort" // they start too slowly for it
)

// Reasons of condition AutoscalerApplied.
const (
	ReasonApplied              = "Applied"              // our autoscaler is up to date
	ReasonToleranceUnsupported = "ToleranceUnsupported" // the API server drops the tolerance of an HPA
	ReasonActuationSlow        = "ActuationSlow"        // the autoscaler sets decided numbers too late
	ReasonRecommendOnly        = "RecommendOnly"        // in mode Recommend there is no autoscaler
	ReasonDirect               = "Direct"               // the controller writes the number of replicas itself
	ReasonSwitchedOff          = "SwitchedOff"          // replicas were set to 0 by hand, which switches scaling off
	ReasonScaleFailed          = "ScaleFailed"          // the number of replicas could not be written
	ReasonApplyFailed          = "ApplyFailed"          // a write of our autoscaler failed and is retried
	ReasonRefused              = "ApplyRefused"         // the API server refuses our autoscaler
	ReasonFieldConflict        = "FieldConflict"        // another manager owns a field of our autoscaler
	ReasonScheduleInvalid      = "ScheduleInvalid"      // a schedule of the policy cannot be evaluated
	ReasonOlderPolicy          = "OlderPolicy"          // another policy on the same target takes precedence
	ReasonNameTaken            = "AutoscalerNameTaken"  // another controller's object has the name of our autoscaler
	ReasonKEDAMissing          = "KEDAMissing"          // the actuator is KEDA, and KEDA is not installed
	ReasonScalerUnknown        = "ScalerUnknown"        // the adapter does not know the address of the scaler
	ReasonOtherScaledObject    = "OtherScaledObject"    // the target has another ScaledObject, and KEDA admits one
	ReasonScaledObjectStays    = "ScaledObjectStays"    // our ScaledObject was deleted, and KEDA keeps its finalizer
)

// Reasons of condition AutoscalerApplied about conflicting autoscalers.
const (
	ReasonFunctionHasOwnAutoscaler = "FunctionHasOwnAutoscaler" // maxReplicas makes Function Mesh run its own
	ReasonAutoscalerOrphaned       = "AutoscalerOrphaned"       // Function Mesh left its autoscaler behind
	ReasonConflictingAutoscaler    = "ConflictingAutoscaler"    // another autoscaler scales the target
	ReasonTakingOver               = "TakingOver"               // a suspended autoscaler still exists
	ReasonTakeOverFailed           = "TakeOverFailed"           // suspending an autoscaler failed and is retried
	ReasonRecreated                = "Recreated"                // a suspended autoscaler was recreated
	ReasonRestoring                = "Restoring"                // what was suspended is being restored
)

// Reasons of condition ScalingActive. Its other reasons are the HorizontalPodAutoscaler's and KEDA's.
const (
	ReasonScaledObjectPaused = "ScaledObjectPaused" // our ScaledObject was paused by an annotation
	ReasonReplicasReset      = "ReplicasReset"      // a tool resets the replicas repeatedly, by its manifest
	ReasonFallback           = "Fallback"           // KEDA gets no answer from the scaler, and keeps the replicas
)

// Condition types of an AutoscalingPolicySet, besides Ready, Stalled, and TargetFound, which is True when its selector
// matches.
const (
	ConditionPoliciesApplied = "PoliciesApplied" // each governed object has its policy
)

// Reasons of an AutoscalingPolicySet's conditions.
const (
	ReasonNothingMatches  = "NothingMatches"  // the selector matches no object
	ReasonSelectorInvalid = "SelectorInvalid" // the selector cannot be read
	ReasonAllReady        = "AllReady"        // all policies of the set are Ready
	ReasonNotGoverned     = "NotGoverned"     // the set governs nothing that its selector matches
	ReasonPolicyNameTaken = "PolicyNameTaken" // another owner's policy has the name of a new policy
)

// Reasons of objects that an AutoscalingPolicySet matches and does not govern, besides OwnedByFunctionMesh.
const (
	ReasonNamedByPolicy  = "NamedByPolicy"  // an AutoscalingPolicy names the object
	ReasonOlderPolicySet = "OlderPolicySet" // an older AutoscalingPolicySet selects the object
	ReasonNothingToScale = "NothingToScale" // the object consumes nothing from Pulsar
)
