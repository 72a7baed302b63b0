// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// subscriptionStats are those of a subscription, of one topic or of all its partitions.
type subscriptionStats struct {
	Consumers []struct {
		AvailablePermits int64 `json:"availablePermits"`
		UnackedMessages  int64 `json:"unackedMessages"`
	} `json:"consumers"`
	MsgBacklog    int64 `json:"msgBacklog"`
	MsgOutCounter int64 `json:"msgOutCounter"`
	// published messages are those of the topic.
	published int64
}

// subscription reads its stats once.
func (a admin) subscription(ctx context.Context, topic, name string, isPartitioned bool) (subscriptionStats, error) {
	path := adminPath(topic) + "/stats"
	if isPartitioned {
		path = adminPath(topic) + "/partitioned-stats?perPartition=false"
	}
	answer, _, err := a.once(ctx, call{method: http.MethodGet, path: path, accepted: []int{http.StatusOK}})
	var found struct {
		MsgInCounter  int64                        `json:"msgInCounter"`
		Subscriptions map[string]subscriptionStats `json:"subscriptions"`
	}
	if err == nil {
		err = json.Unmarshal(answer, &found)
	}
	if err != nil {
		return subscriptionStats{}, fmt.Errorf("reading the stats of topic %s: %w", topic, err)
	}
	stats := found.Subscriptions[name]
	stats.published = found.MsgInCounter
	return stats, nil
}

// redelivered is how many messages Pulsar delivered again, such as those of replicas that were removed; nil if that is
// unknown, such as for a target: its topic has other messages, and while some messages are not acknowledged.
func (r *runner) redelivered(ctx context.Context, s subject) *int64 {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	sum := int64(0)
	for _, one := range s.stages {
		if one.subscription == "" {
			return nil
		}
		stats, err := r.admin.subscription(ctx, one.input, one.subscription, r.Scenario.Partitions > 0)
		if err != nil || stats.MsgBacklog > 0 || stats.MsgOutCounter < stats.published {
			return nil
		}
		sum += stats.MsgOutCounter - stats.published
	}
	return &sum
}
