// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// signalsCase publishes, receives, acknowledges and delays a known number of messages on its own topics, and compares
// the product's readings.
type signalsCase func(t *testing.T, g *ground)

// signalsAtOnce bounds parallel cases: they mostly wait for the next response.
const signalsAtOnce = 6

// TestSignals compares each signal with the truth, on the version of Pulsar in PULSAR (make e2e-signals: on all).
func TestSignals(t *testing.T) {
	g := onGround(t)
	var group errgroup.Group
	group.SetLimit(signalsAtOnce) // t.Parallel would be bounded by the number of processors
	for name, run := range map[string]signalsCase{
		"total is in messages, no batching":                   totalIsInMessages(0, 1),
		"total is in messages, batches of 50":                 totalIsInMessages(0, 50),
		"total is in messages, 1 partition":                   totalIsInMessages(1, 1),
		"total is in messages, 1 partition and batches of 50": totalIsInMessages(1, 50),
		"total is in messages, 4 partitions":                  totalIsInMessages(4, 1),
		"total is in messages, 4 partitions, batches of 50":   totalIsInMessages(4, 50),
		"total follows the size of batches":                   totalFollowsTheSizeOfBatches,
		"messages of transactions of 1 are counted":           messagesOfTransactionsAreCounted(300, 1),
		"messages of transactions of 3 are counted":           messagesOfTransactionsAreCounted(100, 3),
		"markers that are left are done once":                 markersThatAreLeftAreDoneOnce,
		"a backlog from before an unload is in messages":      aBacklogFromBeforeAnUnloadIsInMessages(0),
		"a backlog from before an unload, 2 partitions":       aBacklogFromBeforeAnUnloadIsInMessages(2),
		"unacked and undispatched are told apart":             unackedAndUndispatchedAreToldApart,
		"consumers that hold messages are counted":            consumersThatHoldMessagesAreCounted,
		"blocked while too much is held":                      blockedWhileTooMuchIsHeld,
		"delayed messages are not ready":                      delayedMessagesAreNotReady,
		"delays that pass make messages ready":                delaysThatPassMakeMessagesReady,
		"delays that pass without a consumer too":             delaysThatPassWithoutAConsumerMakeMessagesReady,

		"a scalable topic is its segments":          aScalableTopicIsItsSegments,
		"an unload keeps the backlog":               anUnloadKeepsTheBacklog(0),
		"an unload keeps the backlog, 3 partitions": anUnloadKeepsTheBacklog(3),
		"an unloaded partition changes no rate":     anUnloadedPartitionChangesNothing,
		"deleted partitions are no smaller backlog": deletedPartitionsAreNoSmallerBacklog,

		"rates times their window are messages":                        ratesTimesTheirWindowAreMessages(0, 1),
		"rates times their window are messages, 3 partitions":          ratesTimesTheirWindowAreMessages(3, 1),
		"rates times their window are messages, 3 partitions, batches": ratesTimesTheirWindowAreMessages(3, 20),
		"rates, no batching":               ratesAreThoseOfTheLoad(false, 0),
		"rates, batching":                  ratesAreThoseOfTheLoad(true, 0),
		"rates, no batching, 4 partitions": ratesAreThoseOfTheLoad(false, 4),
		"rates, batching, 4 partitions":    ratesAreThoseOfTheLoad(true, 4),

		"partitions are unread until the client finds them": addedPartitionsAreUnread,
		"skew is shown by partition":                        skewIsShownByPartition,

		"topics of a pattern are followed as they come and go": topicsOfAPatternAreFollowedAsTheyComeAndGo,
		"a consumer of a pattern counts once":                  aConsumerOfAPatternCountsOnce,

		"oldest age":               oldestAgeIsThatOfTheOldestMessage(0),
		"oldest age, 3 partitions": oldestAgeIsThatOfTheOldestMessage(3),
		"bytes":                    bytesAreThoseOfTheBacklog,
		"counts near zero":         countsNearZeroAreExact,

		"consumers of Exclusive":                           typesAreKnown(pulsar.Exclusive, backlog.Exclusive, 1),
		"consumers of Shared":                              typesAreKnown(pulsar.Shared, backlog.Shared, 3),
		"consumers of Failover":                            typesAreKnown(pulsar.Failover, backlog.Failover, 3),
		"consumers of Key_Shared":                          typesAreKnown(pulsar.KeyShared, backlog.KeyShared, 3),
		"topics of two types are told":                     topicsOfTwoTypesAreTold,
		"instances are counted once over all topics":       instancesAreCountedOnce,
		"functions that share a subscription are named":    functionsThatShareASubscriptionAreNamed,
		"a consumer that dies finishes nothing":            aConsumerThatDiesFinishesNothing,
		"a consumer that seeks finishes nothing":           aConsumerThatSeeksFinishesNothing,
		"consumers that share a name are several":          consumersThatShareANameAreSeveral,
		"busy consumers leave messages in replay":          busyConsumersLeaveMessagesInReplay,
		"draining while keys wait":                         drainingWhileKeysWaitForTheirFormerConsumer,
		"throttled while a rate limit holds dispatch back": throttledWhileARateLimitHoldsDispatchBack,
		"failed messages are redelivered":                  failedMessagesAreRedelivered,

		"missing topics and subscriptions are told apart":               missingTopicsAndSubscriptionsAreToldApart(0),
		"missing topics and subscriptions are told apart, 2 partitions": missingTopicsAndSubscriptionsAreToldApart(2),
		"a recreated topic starts anew":                                 aRecreatedTopicStartsAnew,
		"topics that are unknown leave the others":                      topicsThatAreUnknownLeaveTheOthers,
		"non-persistent topics are unknown":                             ofNonPersistentTopicsAreUnknown,
	} {
		group.Go(func() error {
			t.Run(name, func(t *testing.T) { run(t, g) })
			return nil
		})
	}
	_ = group.Wait() // the cases report to t
}
