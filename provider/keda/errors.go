// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Why there is no answer. Every error inside this package is a fault with one of them, or wraps ErrMetadata.
var (
	errMetric      = errors.New("no such metric")
	errNotFound    = errors.New("not found")
	errUnsupported = errors.New("unsupported")
	errUnknown     = errors.New("unknown")
	errExpired     = errors.New("unknown for too long")
	errDraining    = errors.New("draining")
	errTooSlow     = errors.New("too slow")
	errBusy        = errors.New("busy")
	errGone        = errors.New("client gone")
)

// row is how the client sees a reason.
type row struct {
	reason error
	code   codes.Code
}

// table maps reasons to codes. What the user has to fix is InvalidArgument, NotFound or FailedPrecondition, what
// passes is Unavailable; KEDA treats all alike, and shows the text in the events of the ScaledObject.
func table() []row {
	return []row{
		{ErrMetadata, codes.InvalidArgument},
		{errMetric, codes.InvalidArgument},
		{errNotFound, codes.NotFound},
		{errUnsupported, codes.FailedPrecondition},
		{errUnknown, codes.Unavailable},
		{errExpired, codes.Unavailable},
		{errDraining, codes.Unavailable},
		{errTooSlow, codes.DeadlineExceeded},
		{errBusy, codes.ResourceExhausted},
		{errGone, codes.Canceled},
	}
}

// codeOf finds the code of an error; what is in no row is a bug of ours.
func codeOf(err error) codes.Code {
	for _, r := range table() {
		if errors.Is(err, r.reason) {
			return r.code
		}
	}
	return codes.Internal
}

// statusError is what the client gets for an error, nil for none.
func statusError(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codeOf(err), oneLine(err))
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

// unread is the error for a consumer interface's error about the subject.
func unread(subject Subject, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return newFault(errNotFound, "%s not found: create it, or correct the metadata of the trigger", subject.describe())
	case errors.Is(err, backlog.ErrFunctionNotFound):
		return newFault(errNotFound, "%s: create it, or correct the metadata of the trigger", err)
	case errors.Is(err, backlog.ErrUnsupported):
		return newFault(errUnsupported, "%s", err)
	default:
		return newFault(errUnknown, "%s", err)
	}
}

// isMisconfigured says that the error stays until the user corrects something.
func isMisconfigured(err error) bool {
	return errors.Is(err, errNotFound) || errors.Is(err, errUnsupported)
}

// undecided is the error for why a policy has no number.
func undecided(err error) error {
	if errors.Is(err, plan.ErrFleet) {
		return newFault(errUnsupported, "%s", err)
	}
	return newFault(errUnknown, "%s", err)
}

// mostTopicsShown is how much of a list of topics is shown: what follows it says what to do, and must not be cut off.
const mostTopicsShown = 160

// describe names the subject for a person.
func (s Subject) describe() string {
	switch {
	case s.Policy != "":
		return fmt.Sprintf("AutoscalingPolicy %q in namespace %q", s.Policy, s.Namespace)
	case s.Target.Name != "":
		return fmt.Sprintf("%s %q in namespace %q", s.Target.Kind, s.Target.Name, s.Namespace)
	case s.Component.Name != "":
		return fmt.Sprintf("%s %s/%s/%s", s.Component.Kind, s.Component.Tenant, s.Component.Namespace, s.Component.Name)
	default:
		return fmt.Sprintf("subscription %q on %s", shorten(s.Subscription, mostShown), shorten(s.Topics, mostTopicsShown))
	}
}

// maxText bounds an error text in bytes, what is wrong with metadata MostErrorBytes: KEDA puts it into an event, of at
// most 1024, behind words of its own.
const maxText = 512

// oneLine makes the text of an error one valid line that is not too long.
func oneLine(err error) string {
	most := maxText
	if errors.Is(err, ErrMetadata) {
		most = MostErrorBytes
	}
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?"))
	return shorten(strings.Join(strings.Fields(printable), " "), most)
}
