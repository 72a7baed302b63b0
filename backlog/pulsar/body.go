// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

const (
	// maxReasonBytes is the part that is read of an answer other than 200: a stack trace may follow.
	maxReasonBytes = 16 << 10
	// maxDrainBytes is the part that is read after the end of an answer to reuse its connection.
	maxDrainBytes = 4 << 10
)

func isJSON(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// maxAge bounds the age that a cache in between reports (RFC 9111, 5.1): an older answer is stale in any case.
const maxAge = time.Hour

// seconds reads a header with a number of seconds, at most that long; 0 if it has none.
func seconds(text string, most time.Duration) time.Duration {
	number, err := strconv.ParseInt(text, 10, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0
	}
	return time.Duration(max(0, min(number, int64(most/time.Second)))) * time.Second
}

// readError reads Pulsar's reason, and removes the credentials in case a server in between echoes them.
func readError(resp *http.Response, shown *auth.Transport) errorAnswer {
	answer := errorAnswer{status: resp.StatusCode}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReasonBytes))
	if err != nil || !isJSON(resp) {
		return answer // the status is enough
	}
	reason, ok := decodeReason(body)
	answer.json, answer.reason = ok, backlog.Quote(shown.Redact(reason))
	return answer
}

func decodeReason(body []byte) (reason string, ok bool) {
	var answer struct {
		Reason *string `json:"reason"`
	}
	if err := json.Unmarshal(body, &answer, jsontext.AllowInvalidUTF8(true)); err != nil || answer.Reason == nil {
		return "", false
	}
	return *answer.Reason, true
}

// drain reads the rest, so that the connection can be reused.
func drain(body io.Reader) {
	_, _ = io.CopyN(io.Discard, body, maxDrainBytes) // an error only costs the connection
}

// decodeJSON reads exactly one value without repeated keys, for small answers; a scanner reads large ones.
func decodeJSON(r io.Reader, into any) error {
	if a, charged := r.(*answer); charged {
		r = wholeReader{a}
	}
	err := json.UnmarshalRead(r, into, jsontext.AllowInvalidUTF8(true))
	wrong := new(json.SemanticError)
	if !errors.As(err, &wrong) {
		return syntaxFault(err)
	}
	name := cmp.Or(wrong.JSONPointer.LastToken(), "it")
	if errors.Is(wrong.Err, strconv.ErrRange) {
		return tooLarge(name, string(wrong.JSONValue))
	}
	return fmt.Errorf("%s is %s", name, kindOf(wrong.JSONKind))
}

// closingBody calls closed, a sync.OnceFunc, when it is closed.
type closingBody struct {
	io.ReadCloser

	closed func()
}

func (b *closingBody) Close() error {
	err := b.ReadCloser.Close()
	b.closed()
	return err
}

// The memory of all answers that are being decoded is bounded together: each may keep smallAnswer, about as much as its
// connection, and largeAnswers of them up to largestAnswer. An answer reserves all of that at once, since two answers
// that each have a part would wait for each other.
const (
	smallAnswer   = 256 << 10
	largestAnswer = 32 << 20
	largeAnswers  = 2
)

// maxConsumers of a subscription on one partition, and maxAnswerConsumers of a whole answer, are kept; more are only
// counted. No function has this many instances.
const (
	maxConsumers       = 5_000
	maxAnswerConsumers = 20_000
)

// The charge for one of each, with the spare capacity of growing slices and maps.
const (
	partitionCost    = 200
	subscriptionCost = 500
	consumerCost     = 200
	textCost         = 50
)

// wholeJSON is the number of bytes that decodeJSON may need for each byte of an answer.
const wholeJSON = 4

var errKeepsTooMuch = fmt.Errorf("more than %d bytes of it would be kept", largestAnswer)

// budget has a place for each large answer that is being decoded.
type budget chan struct{}

func newBudget() budget { return make(budget, largeAnswers) }

// answer is the body of one answer with the bytes that are kept of it. Skipped parts cost nothing.
type answer struct {
	io.Reader

	ctx    context.Context //nolint:containedctx // of the request, in which the answer waits for its place
	budget budget
	// decoding is the number of bytes that all answers keep now.
	decoding *atomic.Int64
	decoders decoders
	kept     int
	large    bool
}

// decoder of the answer; a new one for a reader that is none.
func (a *answer) decoder() *jsontext.Decoder {
	if a == nil {
		return new(jsontext.Decoder)
	}
	return a.decoders.take()
}

// keep charges the bytes that a decoder is about to keep. Beyond smallAnswer it waits for a place; the error is a
// waitError if there was no time left, or errKeepsTooMuch.
func (a *answer) keep(bytes int) error {
	if a == nil {
		return nil
	}
	a.kept += bytes
	a.decoding.Add(int64(bytes))
	switch {
	case a.kept > largestAnswer:
		return errKeepsTooMuch
	case a.kept <= smallAnswer || a.large:
		return nil
	}
	select {
	case a.budget <- struct{}{}:
		a.large = true
		return nil
	case <-a.ctx.Done():
		return &waitError{err: a.ctx.Err()}
	}
}

func (a *answer) release() {
	a.decoding.Add(-int64(a.kept))
	a.kept = 0
	if a.large {
		a.large = false
		<-a.budget
	}
}

// wholeReader charges all that it reads.
type wholeReader struct{ *answer }

func (r wholeReader) Read(p []byte) (int, error) {
	n, err := r.answer.Read(p)
	if charged := r.keep(wholeJSON * n); charged != nil {
		return 0, charged
	}
	return n, err
}
