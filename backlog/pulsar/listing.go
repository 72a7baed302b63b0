// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"context"
	"io"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// List implements poll.Lister. It sends two calls: one lists topics and partitions that were ever loaded, the other
// partitioned topics, loaded or not. It keeps no name, so that a large namespace costs time, not memory.
func (s *Source) List(ctx context.Context, namespace backlog.Namespace, add func(topic string)) error {
	a, err := namespaceAddress(namespace)
	if err != nil {
		return err
	}
	found := newListing(namespace.Name, add)
	for _, call := range []callName{callTopics, callPartitionedTopics} {
		if err := s.client.get(ctx, a, call, "includeSystemTopic=false", found.decode); err != nil {
			return err
		}
	}
	return nil
}

// listing decodes the topics of a namespace.
type listing struct {
	prefix []byte
	add    func(topic string)
}

func newListing(namespace string, add func(topic string)) listing {
	return listing{prefix: []byte("persistent://" + namespace + "/"), add: add}
}

// decode reads a list of names. It may be called several times.
func (l listing) decode(r io.Reader) error {
	s := newScanner(r)
	var last []byte // the partitions of a topic are often in a row
	err := s.array(func() error {
		text, err := s.textOrNull("a topic")
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(text, l.prefix) {
			return nil // non-persistent, or of an unknown domain
		}
		text = text[:baseLength(text)]
		if len(text) <= len(l.prefix) || bytes.Equal(text, last) {
			return nil
		}
		last = append(last[:0], text...)
		if name := validText(text); !backlog.SystemTopic(name) {
			l.add(name)
		}
		return nil
	})
	return s.finish(err)
}

// baseLength is the length of a name without the partition, as Pulsar's clients read it, even if there is no such
// partitioned topic: all of it if there is none. An index has up to 9 digits.
//
// Source: org.apache.pulsar.common.naming.TopicName.getPartitionedTopicName.
func baseLength(name []byte) int {
	index := len(name)
	for index > 0 && name[index-1] >= '0' && name[index-1] <= '9' {
		index--
	}
	digits, base := len(name)-index, index-len(backlog.PartitionSuffix)
	if digits == 0 || digits > 9 || (digits > 1 && name[index] == '0') || base < 0 {
		return len(name)
	}
	for i := range len(backlog.PartitionSuffix) {
		if name[base+i] != backlog.PartitionSuffix[i] {
			return len(name)
		}
	}
	return base
}
