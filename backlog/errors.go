// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// Reasons why something is unknown. Callers distinguish them with errors.Is and map them to conditions and statuses.
// The wrapping text names the topic, the URL and the fix.
var (
	// ErrNotTracked: no owner tracks this subscription, so it was never fetched.
	ErrNotTracked = errors.New("not tracked")
	// ErrNoData: the subscription is tracked, and there is no first answer yet.
	ErrNoData = errors.New("no data yet")
	// ErrNoRate: a rate needs two answers with no counter reset between them.
	ErrNoRate = errors.New("no rate yet: it needs two answers with no counter reset between")
	// ErrNotRequested: the last answer was a slim one, which leaves this number out.
	ErrNotRequested = errors.New("not requested")
	// ErrNotReported: this version of Pulsar does not report the number.
	ErrNotReported = errors.New("not reported")
	// ErrStale: the last good answer is too old to act on.
	ErrStale = errors.New("stale")
	// ErrPartial: some topics or partitions are unknown, so that a sum of the others is a lower bound.
	ErrPartial = errors.New("partial answer")
	// ErrTopicNotFound: Pulsar reports that the topic does not exist.
	ErrTopicNotFound = errors.New("topic not found")
	// ErrSubscriptionNotFound: the topic exists and has no such subscription.
	ErrSubscriptionNotFound = errors.New("subscription not found")
	// ErrFunctionNotFound: the function worker reports that it has no such function, sink or source.
	ErrFunctionNotFound = errors.New("function not found")
	// ErrNoWorker: the brokers run no function worker and are not configured with one.
	ErrNoWorker = errors.New("no function worker")
	// ErrUnauthenticated: Pulsar refused the credentials.
	ErrUnauthenticated = errors.New("credentials refused")
	// ErrHostNotAllowed: the address is not on the list of allowed hosts, so nothing was sent there.
	ErrHostNotAllowed = errors.New("host not allowed")
	// ErrForbidden: the credentials are valid and lack a permission.
	ErrForbidden = errors.New("permission missing")
	// ErrUnreachable: no answer: refused, timed out, unknown host, TLS failure.
	ErrUnreachable = errors.New("unreachable")
	// ErrUnavailable: Pulsar reports that it cannot answer now: 5xx, 429.
	ErrUnavailable = errors.New("unavailable")
	// ErrProtocol: the answer is not what Pulsar sends; the URL is probably not a Pulsar admin service.
	ErrProtocol = errors.New("unexpected answer")
	// ErrImplausible: the answer has Pulsar's form but contradicts itself, or what is known about the topic, and a second
	// answer did not confirm it.
	ErrImplausible = errors.New("implausible answer")
	// ErrUnsupported: the requested input can never be read, and the user has to change it: non-persistent topics, invalid
	// topic names, patterns in a syntax that Go's regexp lacks.
	ErrUnsupported = errors.New("not supported")
	// ErrTooLarge: an answer, or a text in it, is larger than what is read. One without consumers may not be.
	ErrTooLarge = errors.New("too large")
	// ErrTooManyTopics: the subscription has more topics than its owner may track, see Bounds.
	ErrTooManyTopics = errors.New("too many topics")
)

// Authoritative reports whether the error is Pulsar's own statement about the topic, which a retry within seconds
// cannot change. It replaces the last good answer at once; other errors leave that answer in use until it is stale.
func Authoritative(err error) bool {
	return errors.Is(err, ErrTopicNotFound) || errors.Is(err, ErrSubscriptionNotFound)
}

// ReasonLabel is the reason of a failed request to Pulsar, for labels of metrics. An error without a reason counts as
// ErrProtocol.
func ReasonLabel(err error) string {
	for _, one := range []struct {
		reason error
		label  string
	}{
		{ErrPartial, "partial"},
		{ErrTopicNotFound, "topic_not_found"},
		{ErrFunctionNotFound, "function_not_found"},
		{ErrNoWorker, "no_worker"},
		{ErrUnauthenticated, "unauthenticated"},
		{ErrHostNotAllowed, "host_not_allowed"},
		{ErrForbidden, "forbidden"},
		{ErrUnreachable, "unreachable"},
		{ErrUnavailable, "unavailable"},
		{ErrImplausible, "implausible"},
		{ErrUnsupported, "unsupported"},
		{ErrNoData, "no_data"},
	} {
		if errors.Is(err, one.reason) {
			return one.label
		}
	}
	return "protocol"
}

// errDelaysUnknown is why Delayed is unknown without a consumer.
var errDelaysUnknown = errors.New("pulsar reports delayed messages only while a consumer is connected")

// errNotToldApart is why Holding is unknown.
var errNotToldApart = errors.New("it is unknown which consumers hold unacknowledged messages")

// errUnackedNotCounted is why Unacked is unknown for Exclusive and Failover.
var errUnackedNotCounted = errors.New("pulsar counts unacknowledged messages for Shared and Key_Shared only")

// ReasonError is an error with a text for users and the reason for programs: one of the reasons of this package.
type ReasonError struct {
	Reason error
	// Cause is nil unless a program may need it, such as context.Canceled.
	Cause error
	// Text is the whole visible text. It begins with the reason and names the fix.
	Text string
}

// Errorf returns an error with a text of the reason and the formatted message.
func Errorf(reason error, format string, args ...any) *ReasonError {
	return &ReasonError{Reason: reason, Text: reason.Error() + ": " + fmt.Sprintf(format, args...)}
}

// Because sets the cause, and returns the error.
func (f *ReasonError) Because(cause error) *ReasonError {
	f.Cause = cause
	return f
}

// Error implements error.
func (f *ReasonError) Error() string { return f.Text }

// Unwrap returns the reason and the cause.
func (f *ReasonError) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Reason}
	}
	return []error{f.Reason, f.Cause}
}

// MostQuoted is the maximum number of quoted bytes of a foreign text, which ends up in a status and in kubectl's
// output.
const MostQuoted = 200

// Quote returns the visible part of a foreign text: its first line without control characters, shortened to MostQuoted.
func Quote(words string) string {
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	words = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(words, "?"))
	if len(words) <= MostQuoted {
		return words
	}
	return strings.ToValidUTF8(words[:MostQuoted], "") + "..."
}

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

// Body is the body of an answer. It keeps an error of the connection, which a decoder would report as invalid text.
type Body struct {
	io.ReadCloser

	// Broken is the error that ended the body; nil for none.
	Broken error
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.Broken = err
	}
	return n, err
}
