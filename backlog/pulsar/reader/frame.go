// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

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
}

// body is an encoded command without its kind.
type body []byte

func (b body) number(field protowire.Number, value uint64) body {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func (b body) string(field protowire.Number, value string) body {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func frame(k kind, b body) []byte {
	base := body{}.number(1, uint64(k)).string(k, string(b)) //nolint:gosec // a constant above 0
	size := uint32(len(base))                                //nolint:gosec // a name of a topic and a token
	framed := binary.BigEndian.AppendUint32(nil, size+4)
	return append(binary.BigEndian.AppendUint32(framed, size), base...)
}

// read reads a frame, and skips the payload of a message.
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
	if _, err := io.CopyN(io.Discard, from, int64(total-4-size)); err != nil {
		return command{}, err
	}
	return decode(base)
}

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
