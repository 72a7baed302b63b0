// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// ConnectionCause describes in a few words why a request got no answer, without the method, the URL and the address
// that Go's texts repeat at every layer. A timeout names the limit; 0 leaves it out.
func ConnectionCause(err error, limit time.Duration) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "its name could not be looked up"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to host"
	case TimedOut(err) && limit > 0:
		return fmt.Sprintf("no answer within %s", limit)
	case TimedOut(err):
		return "no answer in time"
	case ConnectionBroken(err):
		return "the connection was closed before the answer was complete"
	default:
		return Quote(Innermost(err).Error())
	}
}

// TimedOut reports whether the time for a request was over, by its context or by a limit of the connection. A url.Error
// checks only its direct cause.
func TimedOut(err error) bool {
	var timeout net.Error
	for errors.As(err, &timeout) {
		if timeout.Timeout() {
			return true
		}
		err = errors.Unwrap(timeout)
	}
	return false
}

// ConnectionBroken reports whether the other side closed an established connection.
func ConnectionBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// Innermost is the first cause of an error.
func Innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// TooLongError reports that a BoundedReader has more bytes than its limit.
type TooLongError struct{ Limit int64 }

func (e TooLongError) Error() string { return fmt.Sprintf("more than %d bytes", e.Limit) }

// BoundedReader reads the body of an answer up to a limit. It keeps an error of the connection, which a decoder would
// report as invalid text.
type BoundedReader struct {
	from        io.Reader
	left, limit int64
	broken      error
}

// NewBoundedReader returns a reader that ends in a TooLongError after limit bytes.
func NewBoundedReader(from io.Reader, limit int64) *BoundedReader {
	return &BoundedReader{from: from, left: limit, limit: limit}
}

// Read implements io.Reader.
func (r *BoundedReader) Read(p []byte) (int, error) {
	if r.left < 0 {
		return 0, TooLongError{Limit: r.limit}
	}
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.from.Read(p)
	r.left -= int64(n)
	switch {
	case r.left < 0:
		return n, TooLongError{Limit: r.limit}
	case err != nil && !errors.Is(err, io.EOF):
		r.broken = err
	}
	return n, err
}

// Broken is the error of the connection that ended the body; nil for none.
func (r *BoundedReader) Broken() error { return r.broken }
