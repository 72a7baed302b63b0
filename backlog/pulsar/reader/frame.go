// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// kind of a command, which is also the number of its field in BaseCommand (PulsarApi.proto).
type kind = protowire.Number

const (
	connect       kind = 2
	connected     kind = 3
	subscribe     kind = 4
	message       kind = 9
	flow          kind = 11
	success       kind = 13
	failure       kind = 14
	closeConsumer kind = 16
	ping          kind = 18
	pong          kind = 19
	authChallenge kind = 36
)

// Fields of MessageMetadata.
const (
	deliverAtTime = 19
	markerType    = 20
)

// Codes of a failure (ServerError in PulsarApi.proto).
const (
	authenticationError = 3
	authorizationError  = 4
	topicNotFound       = 11
)

const (
	headerBytes = 8
	// maxCommandBytes bounds a command, without the payload of a message.
	maxCommandBytes = 64 << 10
)

// command is what is used of one that a broker sent. Each of these has the number of a consumer or request in field 1;
// this package uses the same number for both.
type command struct {
	kind kind
	id   uint64
	// code and text are those of a failure.
	code uint64
	text string
	// due is true for a message that consumers get now.
	due bool
}

// body is an encoded command without its kind.
type body []byte

func (b body) number(field protowire.Number, value uint64) body {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func (b body) string(field protowire.Number, value string) body {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), value)
}

// frame encodes a command.
func frame(k kind, b body) []byte {
	base := body{}.number(1, uint64(k)).string(k, string(b)) //nolint:gosec // a constant above 0
	size := uint32(len(base))                                //nolint:gosec // a name of a topic and a token
	framed := binary.BigEndian.AppendUint32(nil, size+4)
	return append(binary.BigEndian.AppendUint32(framed, size), base...)
}

// read reads a frame, and of a message only when it is due.
func read(from *bufio.Reader) (command, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return command{}, err
	}
	total, size := binary.BigEndian.Uint32(header[:4]), binary.BigEndian.Uint32(header[4:])
	if size > maxCommandBytes || total < 4 || size > total-4 {
		return command{}, backlog.Errorf(backlog.ErrProtocol, "a frame of %d bytes with a command of %d", total, size)
	}
	base := make([]byte, size)
	if _, err := io.ReadFull(from, base); err != nil {
		return command{}, err
	}
	rest := &io.LimitedReader{R: from, N: int64(total - 4 - size)}
	c, err := decode(base)
	if err == nil && c.kind == message {
		c.due = isDue(rest)
	}
	if _, failed := io.CopyN(io.Discard, from, rest.N); failed != nil {
		return command{}, failed
	}
	return c, err
}

// isDue reads the metadata of a message: it is due unless it is delayed, or no message but a marker. If the metadata is
// not as expected, that is unknown and counts as not due.
//
// Source: Commands.parseMessageMetadata of Pulsar, MessageMetadata in PulsarApi.proto.
func isDue(from io.Reader) bool {
	const checksumMagic, lengthBytes, checksumBytes = 0x0e01, 4, 4
	var head [lengthBytes]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return false
	}
	if binary.BigEndian.Uint16(head[:]) == checksumMagic { // its checksum has begun
		if _, err := io.CopyN(io.Discard, from, checksumBytes-lengthBytes/2); err != nil {
			return false
		}
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return false
		}
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxCommandBytes {
		return false
	}
	metadata := make([]byte, size)
	if _, err := io.ReadFull(from, metadata); err != nil {
		return false
	}
	due := true
	err := each(metadata, func(field protowire.Number, value uint64, _ []byte) {
		switch field {
		case deliverAtTime:
			due = due && int64(value) <= time.Now().UnixMilli() //nolint:gosec // it is an int64
		case markerType:
			due = false
		default:
		}
	})
	return err == nil && due
}

// decode decodes a BaseCommand.
func decode(base []byte) (c command, err error) {
	bodies := map[kind][]byte{}
	err = each(base, func(field protowire.Number, value uint64, bytes []byte) {
		if field == 1 {
			c.kind = kind(value) //nolint:gosec // an unknown kind is ignored
		} else {
			bodies[field] = bytes
		}
	})
	if err != nil {
		return command{}, err
	}
	err = each(bodies[c.kind], func(field protowire.Number, value uint64, bytes []byte) {
		switch field {
		case 1:
			c.id = value
		case 2:
			c.code = value
		case 3:
			c.text = string(bytes)
		default:
		}
	})
	if err != nil {
		return command{}, err
	}
	return c, nil
}

// each calls do with the fields of a message of Protocol Buffers.
func each(encoded []byte, do func(field protowire.Number, value uint64, bytes []byte)) error {
	for len(encoded) > 0 {
		field, wire, n := protowire.ConsumeTag(encoded)
		var value uint64
		var bytes []byte
		if n > 0 {
			encoded = encoded[n:]
			switch wire {
			case protowire.VarintType:
				value, n = protowire.ConsumeVarint(encoded)
			case protowire.BytesType:
				bytes, n = protowire.ConsumeBytes(encoded)
			default:
				n = protowire.ConsumeFieldValue(field, wire, encoded)
			}
		}
		if n < 0 {
			return backlog.Errorf(backlog.ErrProtocol, "a command: %v", protowire.ParseError(n))
		}
		encoded = encoded[n:]
		do(field, value, bytes)
	}
	return nil
}

// refused is the error of a failure that a broker reports, with the fix if it refuses the credentials.
func (c command) refused(subject, fix string) error {
	text := fmt.Sprintf("%s: the broker says %q", subject, backlog.Quote(c.text))
	switch c.code {
	case authenticationError:
		return backlog.Errorf(backlog.ErrUnauthenticated, "%s: %s", text, fix)
	case authorizationError:
		return backlog.Errorf(backlog.ErrForbidden, "%s: %s", text, fix)
	case topicNotFound:
		return backlog.Errorf(backlog.ErrTopicNotFound, "%s", text)
	default:
		return backlog.Errorf(backlog.ErrUnavailable, "%s", text)
	}
}
