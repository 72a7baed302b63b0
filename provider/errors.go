// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// ErrObjectNotFound is what Signals may return for an object that does not exist; an API server's NotFound means the
// same.
var ErrObjectNotFound = errors.New("object not found")

// Why there is no number. Every error inside this package is a fault with one of them, or with ErrObjectNotFound.
var (
	errNotServed  = errors.New("not served")
	errBadRequest = errors.New("bad request")
	errUnknown    = errors.New("unknown")
	errTooSlow    = errors.New("too slow")
	errBusy       = errors.New("busy")
	errGone       = errors.New("client gone")
)

// row is how the client sees a reason, and how it is counted.
type row struct {
	reason error
	code   int32
	status metav1.StatusReason
	result string
}

// table maps reasons to statuses. What is unknown is a 503: the HorizontalPodAutoscaler keeps the replicas it has and
// asks again at its next sync, 15 s later. client-go repeats a 429 or 5xx only when the answer has a Retry-After
// header, which the API server sets from details.retryAfterSeconds: no status here has details.
//
// Source: client-go rest/with_retry.go (checkWait), apiserver responsewriters/writers.go (ErrorNegotiated).
func table() []row {
	return []row{
		{ErrObjectNotFound, http.StatusNotFound, metav1.StatusReasonNotFound, "not_found"},
		{errNotServed, http.StatusNotFound, metav1.StatusReasonNotFound, "not_found"},
		{errBadRequest, http.StatusBadRequest, metav1.StatusReasonBadRequest, "bad_request"},
		{errUnknown, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "unknown"},
		{errTooSlow, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "too_slow"},
		{errBusy, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "busy"},
		{errGone, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "canceled"},
	}
}

// rowOf finds the row of an error; what is in no row is a bug of ours.
func rowOf(err error) row {
	for _, r := range table() {
		if errors.Is(err, r.reason) {
			return r
		}
	}
	return row{err, http.StatusInternalServerError, metav1.StatusReasonInternalError, "error"}
}

// statusError is what the client gets for an error.
func statusError(err error) *apierrors.StatusError {
	r := rowOf(err)
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    r.code,
		Reason:  r.status,
		Message: shorten(err.Error()),
	}}
}

// fault is an error with a text for users and the reason for the table.
type fault struct {
	reason error
	text   string
}

func (f *fault) Error() string { return f.text }

func (f *fault) Unwrap() error { return f.reason }

func newFault(reason error, format string, args ...any) error {
	return &fault{reason: reason, text: fmt.Sprintf(format, args...)}
}

// unknownFor is the error for a consumer interface's error about an object.
func unknownFor(kind described, namespace, name string, err error) error {
	if errors.Is(err, ErrObjectNotFound) || apierrors.IsNotFound(err) {
		return newFault(ErrObjectNotFound, "%s %q not found in namespace %q", kind.resource, name, namespace)
	}
	return newFault(errUnknown, "%s", err)
}

// undecided is the error for why a policy has no number.
func undecided(err error) error {
	if errors.Is(err, plan.ErrFleet) {
		return newFault(errBadRequest, "%s", err)
	}
	return newFault(errUnknown, "%s", err)
}

// maxText bounds an error text in bytes: it is put into an event, of at most 1024, behind the words of the
// HorizontalPodAutoscaler controller, which are about 200.
const maxText = 512

// shorten makes a text one valid line of at most maxText bytes.
func shorten(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText-len("...")], "") + "..."
}
