// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// maxTopics bounds the topics of one namespace that are listed: about 100 MB of names.
const maxTopics = 500_000

var errTooManyTopics = fmt.Errorf("more than %d topics", maxTopics)

var _ backlog.Lister = (*Source)(nil)

// List implements backlog.Lister. It is two calls: one that names topics and partitions that were ever loaded, and one
// that names partitioned topics, loaded or not.
func (s *Source) List(ctx context.Context, namespace backlog.Namespace) ([]string, error) {
	a, err := namespaceAddress(namespace)
	if err != nil {
		return nil, err
	}
	found := newListing(namespace.Name)
	for _, call := range []callName{callTopics, callPartitionedTopics} {
		if err := s.client.get(ctx, a, call, "includeSystemTopic=false", found.decode); err != nil {
			return nil, err
		}
	}
	names := make([]string, 0, len(found.names))
	for name := range found.names {
		names = append(names, name)
	}
	return names, nil
}

// listing collects the topics of a namespace.
type listing struct {
	prefix string
	names  map[string]struct{}
}

func newListing(namespace string) listing {
	return listing{prefix: "persistent://" + namespace + "/", names: map[string]struct{}{}}
}

// decode reads a list of names. It may be called again: names count once.
func (l listing) decode(r io.Reader) error {
	s := newScanner(r)
	err := s.array(func() error {
		text, err := s.words("a topic")
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(string(text), l.prefix)
		if len(name) == len(text) {
			return nil // non-persistent, or of a domain that this does not know
		}
		if name = withoutPartition(name); name == "" || isSystemTopic(l.prefix, name) {
			return nil
		}
		l.names[keep([]byte(l.prefix+name))] = struct{}{}
		if len(l.names) > maxTopics {
			return errTooManyTopics
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.close()
}

// withoutPartition takes the partition off a name, as Pulsar's clients do, even if there is no such partitioned topic.
//
// Source: org.apache.pulsar.common.naming.TopicName.getPartitionedTopicName.
func withoutPartition(name string) string {
	at := strings.LastIndex(name, partitionSuffix)
	if at < 0 {
		return name
	}
	digits := name[at+len(partitionSuffix):]
	if index, err := strconv.Atoi(digits); err != nil || index < 0 || strconv.Itoa(index) != digits {
		return name
	}
	return name[:at]
}

// isSystemTopic knows the topics that Pulsar writes for itself. Brokers leave them out when they are asked to.
//
// Source: org.apache.pulsar.common.naming.SystemTopicNames.isSystemTopic.
func isSystemTopic(prefix, name string) bool {
	switch {
	case name == "__change_events", strings.HasPrefix(name, "__transaction_buffer_snapshot"), strings.HasSuffix(name, "__transaction_pending_ack"):
		return true
	case prefix == "persistent://pulsar/system/":
		return strings.HasPrefix(name, "transaction_coordinator_assign") || strings.HasPrefix(name, "__transaction_log_")
	default:
		return false
	}
}
