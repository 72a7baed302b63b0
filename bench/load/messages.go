// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"fmt"
	"io/fs"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	defaultBytes = 1024 // as pulsar-perf
	maxBytes     = 4 << 20
	maxKeys      = 1_000_000
	maxSkew      = 10
	// The defaults of Pulsar's Go client.
	defaultBatch = 1000
	defaultDelay = 10 * time.Millisecond
	maxBatch     = 100_000
	maxDelay     = 10 * time.Second
	// pendingMax and pendingBytes bound messages that wait for the broker.
	pendingMax    = 10_000
	pendingBytes  = 32 << 20
	maxPublishers = 64
)

// Messages describe what is published.
type Messages struct {
	// Bytes of a payload, from 24. Absent: 1024, or those of File.
	Bytes int `json:"bytes,omitempty" unit:"bytes"`
	// File beside the scenario is the payload of each message, which only its properties identify then.
	File string `json:"file,omitempty"`
	// Keys of messages. Absent: none.
	Keys Keys `json:"keys,omitzero"`
	// Batching of messages into entries. Absent: up to 1000 messages or 10 ms, as Pulsar's clients do.
	Batching Batching `json:"batching,omitzero"`
	// Publishers is the number of producers, which publish in turn. Absent: 1.
	Publishers int `json:"publishers,omitempty"`

	// payload is the content of File.
	payload []byte
}

// Keys describe the keys of messages.
type Keys struct {
	// Count is the number of different keys.
	Count int `json:"count,omitempty"`
	// Skew is the exponent of a Zipf distribution: 1 makes the first key twice as frequent as the second. Absent: keys in
	// turn.
	Skew float64 `json:"skew,omitempty"`
}

// Batching bounds an entry. One message is no batching.
type Batching struct {
	MaxMessages int             `json:"maxMessages,omitempty"`
	MaxDelay    metav1.Duration `json:"maxDelay,omitzero"`
}

// Open reads File, if there is one.
func (m Messages) Open(files fs.FS) (Messages, error) {
	if m.File == "" {
		return m, nil
	}
	payload, err := fs.ReadFile(files, m.File)
	switch {
	case err != nil:
		return m, fmt.Errorf("messages.file: %w; it must be beside the scenario or below it", err)
	case len(payload) == 0 || len(payload) > maxBytes:
		return m, fmt.Errorf("messages.file %s has %d bytes: it must have from 1 to %d", m.File, len(payload), maxBytes)
	}
	m.payload, m.Bytes = payload, len(payload)
	return m, nil
}

// payloadOf a message.
func (m Messages) payloadOf(s stamp) []byte {
	if m.payload != nil {
		return m.payload
	}
	return s.payload(m.Bytes)
}

// WithDefaults sets defaults for absent fields.
func (m Messages) WithDefaults() Messages {
	if m.File == "" {
		m.Bytes = cmp.Or(m.Bytes, defaultBytes)
	}
	m.Batching.MaxMessages = cmp.Or(m.Batching.MaxMessages, defaultBatch)
	m.Batching.MaxDelay.Duration = cmp.Or(m.Batching.MaxDelay.Duration, defaultDelay)
	m.Publishers = cmp.Or(m.Publishers, 1)
	return m
}

// Validate checks messages with their defaults.
func (m Messages) Validate() error {
	if err := m.validatePayload(); err != nil {
		return err
	}
	switch {
	case m.Keys.Count < 0 || m.Keys.Count > maxKeys:
		return fmt.Errorf("messages.keys.count is %d: it must be from 0 to %d", m.Keys.Count, maxKeys)
	case !(m.Keys.Skew >= 0 && m.Keys.Skew <= maxSkew):
		return fmt.Errorf("messages.keys.skew is %g: it must be from 0 to %d", m.Keys.Skew, maxSkew)
	case m.Batching.MaxMessages < 1 || m.Batching.MaxMessages > maxBatch:
		return fmt.Errorf("messages.batching.maxMessages is %d: it must be from 1 to %d", m.Batching.MaxMessages, maxBatch)
	case m.Batching.MaxDelay.Duration <= 0 || m.Batching.MaxDelay.Duration > maxDelay:
		return fmt.Errorf("messages.batching.maxDelay is %s: it must be above 0 and at most %s", m.Batching.MaxDelay.Duration,
			maxDelay)
	case m.Publishers < 1 || m.Publishers > maxPublishers:
		return fmt.Errorf("messages.publishers is %d: it must be from 1 to %d", m.Publishers, maxPublishers)
	}
	return nil
}

func (m Messages) validatePayload() error {
	switch {
	case m.File != "" && m.payload == nil && m.Bytes != 0:
		return fmt.Errorf("messages.bytes is %d beside messages.file: set one of them", m.Bytes)
	case m.File == "" && (m.Bytes < StampBytes || m.Bytes > maxBytes):
		return fmt.Errorf("messages.bytes is %d: it must be from %d to %d", m.Bytes, StampBytes, maxBytes)
	}
	return nil
}
