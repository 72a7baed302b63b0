// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Reason is why there is no number; it is a label of metrics.
type Reason string

// Values of Reason.
const (
	// NotFound, Invalid and Unsupported last until the user corrects something.
	NotFound    Reason = "not_found"
	Invalid     Reason = "bad_request"
	Unsupported Reason = "unsupported"
	// Unknown, TooSlow and Busy are transient.
	Unknown Reason = "unknown"
	TooSlow Reason = "too_slow"
	Busy    Reason = "busy"
	// Canceled: the client is gone.
	Canceled Reason = "canceled"
	// Internal is a bug of ours: an error without a reason.
	Internal Reason = "error"
)

// Reasons returns all of them.
func Reasons() []Reason {
	return []Reason{NotFound, Invalid, Unsupported, Unknown, TooSlow, Busy, Canceled, Internal}
}

// IsMisconfigured reports whether the error lasts until the user corrects something.
func IsMisconfigured(err error) bool {
	switch ReasonOf(err) {
	case NotFound, Invalid, Unsupported:
		return true
	default:
		return false
	}
}

// failure is a reason with a text for the user.
type failure struct {
	reason Reason
	text   string
}

func (f *failure) Error() string { return f.text }

// Errorf returns an error with a reason and a text for the user. It wraps nothing: only the reason matters.
func Errorf(reason Reason, format string, args ...any) error {
	return &failure{reason: reason, text: fmt.Sprintf(format, args...)}
}

// ReasonOf returns the reason of an error; Internal when it has none, and "" for no error.
func ReasonOf(err error) Reason {
	var f *failure
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return f.reason
	default:
		return Internal
	}
}

// Unread is the error for an object that could not be read; name is how users call the object.
func Unread(name string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return Errorf(NotFound, "%s not found", name)
	case errors.Is(err, backlog.ErrFunctionNotFound):
		return Errorf(NotFound, "%s", err)
	case errors.Is(err, backlog.ErrUnsupported), errors.Is(err, backlog.ErrTooManyTopics):
		return Errorf(Unsupported, "%s", err)
	default:
		return Errorf(Unknown, "%s", err)
	}
}
