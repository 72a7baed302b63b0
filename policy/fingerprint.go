// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"hash/fnv"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// fingerprint identifies the subscription that a policy names; empty if the target defines its subscription. The long
// and the short form of a topic are equal, and the Pulsar cluster does not count.
func fingerprint(s *v1alpha1.Subscription) string {
	if s == nil {
		return ""
	}
	var topics []string
	for _, topic := range s.Topics {
		topics = append(topics, string(topic))
	}
	named := backlog.NewSubscription(backlog.Cluster{}, s.Name, topics...)
	text := fmt.Sprintf("%q %q %q %q %d", named.Name, named.Topics, s.TopicsPattern, s.Type,
		max(1, s.ConsumersPerReplica))
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text)) // a hash.Hash never fails
	return fmt.Sprintf("%016x", hash.Sum64())
}
