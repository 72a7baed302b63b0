// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

// callName is the label of a call.
type callName string

const (
	callPartitions       callName = "partitions"
	callStats            callName = "stats"
	callPartitionedStats callName = "partitioned-stats"
	// The calls that ask for the age too: they read from the broker's storage, so they take longer and fail by themselves.
	callStatsWithAge            callName = "stats-age"
	callPartitionedStatsWithAge callName = "partitioned-stats-age"
	callInternalStats           callName = "internal-stats"
	// callPartitionedInternalStats shares the label of callInternalStats.
	callPartitionedInternalStats callName = "partitioned-internal-stats"
	callTopics                   callName = "topics"
	callPartitionedTopics        callName = "partitioned-topics"
	callComponent                callName = "component"
	callComponentStatus          callName = "component-status"
	callParallelism              callName = "parallelism"
	callBrokers                  callName = "brokers"
	callBrokerStats              callName = "broker-stats"
)

func statsCall(partitioned, age bool) callName {
	switch {
	case partitioned && age:
		return callPartitionedStatsWithAge
	case partitioned:
		return callPartitionedStats
	case age:
		return callStatsWithAge
	default:
		return callStats
	}
}

// readsStorage says that the broker's storage has to answer too.
func (c callName) readsStorage() bool {
	return c == callStatsWithAge || c == callPartitionedStatsWithAge
}

// path is the last part of the call's URL, empty for the resource itself.
func (c callName) path() string {
	switch c {
	case callComponent, callParallelism, callBrokers, callTopics:
		return ""
	case callComponentStatus:
		return "status"
	case callBrokerStats:
		return "topics"
	case callStatsWithAge:
		return "stats"
	case callPartitionedStatsWithAge:
		return "partitioned-stats"
	case callInternalStats:
		return "internalStats"
	case callPartitionedInternalStats:
		return "partitioned-internalStats"
	case callPartitionedTopics:
		return "partitioned"
	default:
		return string(c)
	}
}

func (c callName) label() string {
	if c == callPartitionedInternalStats {
		return string(callInternalStats)
	}
	return string(c)
}
