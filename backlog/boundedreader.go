// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"fmt"
	"io"
)

// TooLongError ends a BoundedReader that has more bytes than its limit.
type TooLongError struct{ Limit int64 }

func (e TooLongError) Error() string { return fmt.Sprintf("more than %d bytes", e.Limit) }

// BoundedReader reads the body of an answer up to a limit. It remembers an error of the connection, which a decoder
// would show as bad text.
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

// Broken is the error of the connection that ended the reading, nil for none.
func (r *BoundedReader) Broken() error { return r.broken }
