// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// compressed compresses the responses to clients that accept gzip, as Pulsar does.
type compressed struct {
	next http.Handler
	// writers take 800 KB each.
	writers sync.Pool
}

func newCompressed(next http.Handler) *compressed {
	return &compressed{next: next, writers: sync.Pool{New: func() any {
		writer, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // fails for an unknown level only
		return writer
	}}}
}

// ServeHTTP implements http.Handler.
func (c *compressed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		c.next.ServeHTTP(w, r)
		return
	}
	writer := c.writers.Get().(*gzip.Writer) //nolint:forcetypeassert // see newCompressed
	defer c.writers.Put(writer)
	writer.Reset(w)
	w.Header().Set("Content-Encoding", "gzip")
	c.next.ServeHTTP(compressedResponse{w, writer}, r)
	_ = writer.Close() // the client may be gone
}

type compressedResponse struct {
	http.ResponseWriter
	body io.Writer
}

// Write implements io.Writer.
func (r compressedResponse) Write(p []byte) (int, error) { return r.body.Write(p) }
