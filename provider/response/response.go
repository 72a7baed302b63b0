// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package response

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Policies reads policies from the cache.
type Policies interface {
	// Policy returns the policy, or an API server's NotFound; backlog.ErrNoData while policies are being read, and
	// backlog.ErrUnsupported if the kind is not installed. The caller must not change it.
	Policy(key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error)
}

// DecisionMaker is the process that decides for all policies.
type DecisionMaker interface {
	// Current fails when no replica of the adapter decides now, or none has decided for the policy lately. The error is a
	// text for the user with the time, and has a method Since() time.Time if that is known.
	Current(p *v1alpha1.AutoscalingPolicy, now time.Time) error
}

// Largest number served: its thousandths, 9e15, are below 2^53 and so exact in a float64, and far from the int64 that a
// HorizontalPodAutoscaler reads them into.
const Largest = 9e12

// Number returns the number in the served range, from 0 to Largest; it fails for NaN and infinities.
func Number(value float64) (float64, error) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, Errorf(Unknown, "unknown: the measurement is not a number (%g)", value)
	}
	return min(max(value, 0), Largest), nil
}

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

// MaxTextBytes bounds the text of an error: an event has at most 1024 bytes, and the HorizontalPodAutoscaler controller
// or KEDA adds about 200.
const MaxTextBytes = 800

// Text returns an error's text for the user: one line of at most MaxTextBytes.
func Text(err error) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?"))
	return Shorten(strings.Join(strings.Fields(printable), " "), MaxTextBytes)
}

// Shorten cuts a text to a number of bytes, and marks the cut.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}
