// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// maxTopics bounds the listed topics of one namespace: about 100 MB of names.
const maxTopics = 500_000

var errTooManyTopics = fmt.Errorf("more than %d topics", maxTopics)

// List implements poll.Lister. It sends two calls: one lists topics and partitions that were ever loaded, the other
// partitioned topics, loaded or not.
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

// decode reads a list of names. It may be called several times: each name counts once.
func (l listing) decode(r io.Reader) error {
	s := newScanner(r)
	err := s.array(func() error {
		text, err := s.textOrNull("a topic")
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(text, []byte(l.prefix)) {
			return nil // non-persistent, or of an unknown domain
		}
		text = text[:baseLength(text)]
		if _, known := l.names[string(text)]; known || len(text) <= len(l.prefix) {
			return nil
		}
		name := validText(text)
		if backlog.SystemTopic(name) {
			return nil
		}
		if err := s.answer.keep(len(name)); err != nil {
			return err
		}
		l.names[name] = struct{}{}
		if len(l.names) > maxTopics {
			return errTooManyTopics
		}
		return nil
	})
	return s.finish(err)
}

// withoutPartition removes the partition from a name, as Pulsar's clients do, even if there is no such partitioned
// topic.
//
// Source: org.apache.pulsar.common.naming.TopicName.getPartitionedTopicName.
func withoutPartition(name string) string { return name[:baseLength(name)] }

// baseLength is the length of a name without the partition: all of it if there is none. An index has up to 9 digits.
func baseLength[T string | []byte](name T) int {
	index := len(name)
	for index > 0 && name[index-1] >= '0' && name[index-1] <= '9' {
		index--
	}
	digits, base := len(name)-index, index-len(partitionSuffix)
	if digits == 0 || digits > 9 || (digits > 1 && name[index] == '0') || base < 0 {
		return len(name)
	}
	for i := range len(partitionSuffix) {
		if name[base+i] != partitionSuffix[i] {
			return len(name)
		}
	}
	return base
}
