// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

// AllowedHostsFlag is the flag of the programs that sets Config.AllowedHosts; messages name it.
const AllowedHostsFlag = "--allowed-pulsar-hosts"

// allowedHostsFix names the Deployments with the flag, and the value of the chart, which sets it for both.
const allowedHostsFix = AllowedHostsFlag + " of Deployment adapter (and of Deployment scaler, for triggers of KEDA), " +
	"which is value pulsar.allowedHosts of the chart"

// The table of errors with the reason and the function that makes the text. JSON means Pulsar's own {"reason": "..."}:
// a broker answers 401 both for invalid credentials (a Jetty page in HTML) and for a missing permission (JSON), as
// observed on 4.0.8 and 4.2.4, so the status alone is not enough.
//
//	no connection, no answer, TLS failure   ErrUnreachable      transportFault
//	no turn within the time limit           ErrUnavailable      noTurnFault; nothing was sent
//	the broker ends TLS for our certificate ErrUnauthenticated  certificateRefused
//	no credentials to send                  noCredentials: the reason of the cause, else ErrUnauthenticated, but
//	                                        ErrUnavailable if they were not available in time; nothing was sent
//	200, not JSON, too long, invalid        ErrProtocol         answerFault
//	200, a number above 2^53                ErrImplausible      answerFault
//	200, no place for it in memory in time  ErrUnavailable      noMemoryFault
//	200, all partitions missing             ErrPartial          answerFault
//	401, not JSON                           ErrUnauthenticated  refusal
//	401 or 403, JSON                        ErrForbidden        refusal
//	403, not JSON                           ErrForbidden        refusal: a proxy or a mesh refuses
//	404, JSON                               ErrTopicNotFound    absentFault
//	404, JSON, of the worker                ErrFunctionNotFound absentFault, by address.absent
//	404, JSON, of a segment                 ErrSubscriptionNotFound or ErrPartial by absentFault
//	409, "Function Worker is not enabled"   ErrNoWorker         statusFault
//	404, not JSON                           ErrProtocol         statusFault
//	408, 412 (no owner now), 429, 5xx       ErrUnavailable      statusFault
//	400, JSON, of a change                  refusedChange: ErrFunctionNotFound by its text, else ErrUnsupported
//	any other status                        ErrProtocol         statusFault
//	a host that is not allowed              ErrHostNotAllowed   checkRedirect, barred; nothing was sent there
//	an invalid name                         ErrUnsupported      topicPath, namespaceAddress, checkNames; nothing was sent
//	an invalid URL                          ErrProtocol         parseBase; nothing was sent

func badAdminURL() error {
	return &backlog.ReasonError{
		Reason: backlog.ErrProtocol,
		Text:   "the Pulsar admin URL must look like http://pulsar-broker.pulsar:8080, with no path and no credentials",
	}
}

func badTopicName(name string) error {
	return backlog.Errorf(backlog.ErrUnsupported, "topic name %q must look like persistent://tenant/namespace/name",
		backlog.Quote(name))
}

// noCredentials is the fault if there are no credentials to send. A cause with a reason keeps it, and credentials that
// were not available in time are no refusal.
func noCredentials(a address, cause error) error {
	canceled := errors.Is(cause, context.Canceled)
	reason := backlog.ErrUnauthenticated
	if canceled || errors.Is(cause, context.DeadlineExceeded) {
		reason = backlog.ErrUnavailable
	}
	for _, known := range []error{
		backlog.ErrNoData, backlog.ErrUnreachable, backlog.ErrUnavailable, backlog.ErrHostNotAllowed,
		backlog.ErrForbidden, backlog.ErrProtocol,
		backlog.ErrUnsupported,
	} {
		if errors.Is(cause, known) {
			reason = known
		}
	}
	f := backlog.Errorf(reason, "nothing was sent to %s: %s", a.base.Host,
		strings.TrimPrefix(cause.Error(), reason.Error()+": "))
	if canceled { // the cause of a fault is the broker's, and this time limit was not
		f.Cause = context.Canceled
	}
	return f
}

var errFewerPartitions = errors.New("fewer partitions than known")

// errServerError marks a 5xx that the request itself may cause. 502 and 503 are excluded: they concern the broker or
// the topic's bundle.
var errServerError = errors.New("server error")

// errorAnswer is an answer's status and Pulsar's reason, empty if the body was not Pulsar's JSON.
type errorAnswer struct {
	status int
	json   bool
	reason string
}

// subject names the host, its reason and the resource, unless the reason already names it.
func (e errorAnswer) subject(a address, host string) string {
	switch {
	case e.reason == "":
		return fmt.Sprintf("%s answered %d for %s", host, e.status, a.subject)
	case strings.Contains(e.reason, a.subject):
		return fmt.Sprintf("%s says %q", host, e.reason)
	default:
		return fmt.Sprintf("%s says %q of %s", host, e.reason, a.subject)
	}
}

func statusFault(a address, u *url.URL, s errorAnswer, shown *auth.Transport) error {
	subject := s.subject(a, u.Host)
	switch {
	case s.status == http.StatusUnauthorized || s.status == http.StatusForbidden:
		return refusal(a, u, s, shown)
	case s.status == http.StatusNotFound && s.json:
		return absentFault(a, s, subject)
	case s.status == http.StatusConflict && strings.Contains(s.reason, "Function Worker is not enabled"):
		return backlog.Errorf(backlog.ErrNoWorker,
			"%s: set functionsWorkerEnabled=true on the brokers, or give the URL of the worker that runs apart",
			subject)
	case s.status == http.StatusTooManyRequests:
		return backlog.Errorf(backlog.ErrUnavailable, "%s: too many requests for its httpRequestsMaxPerSecond", subject)
	case s.status == http.StatusRequestTimeout || s.status == http.StatusPreconditionFailed:
		return backlog.Errorf(backlog.ErrUnavailable, "%s: retried soon", subject)
	case s.status >= http.StatusInternalServerError:
		f := backlog.Errorf(backlog.ErrUnavailable, "%s: retried soon", subject)
		if s.status != http.StatusBadGateway && s.status != http.StatusServiceUnavailable {
			f.Cause = errServerError
		}
		if s.status == http.StatusGatewayTimeout {
			f.Cause = errors.Join(errServerError, os.ErrDeadlineExceeded)
		}
		return f
	default:
		return backlog.Errorf(backlog.ErrProtocol, "%s: is %s://%s a Pulsar admin service?", subject, u.Scheme, u.Host)
	}
}

func absentFault(a address, s errorAnswer, subject string) error {
	if strings.HasPrefix(s.reason, "Subscription not found") { // of a segment
		return backlog.Errorf(backlog.ErrSubscriptionNotFound, "%s", subject)
	}
	return backlog.Errorf(a.absent, "%s: %s", subject, a.remedy)
}

func refusal(a address, u *url.URL, s errorAnswer, shown *auth.Transport) error {
	subject := s.subject(a, u.Host)
	switch {
	case s.json:
		return backlog.Errorf(backlog.ErrForbidden, "%s: grant %s to the role of the credentials", subject, a.grant)
	case s.status == http.StatusForbidden:
		return backlog.Errorf(backlog.ErrForbidden,
			"%s, not in Pulsar's words: does a proxy or a mesh in between refuse it?", subject)
	default:
		return backlog.Errorf(backlog.ErrUnauthenticated, "%s %s", u.Host, shown.Refusal(time.Now()))
	}
}

// incompleteError is returned by decoders for a valid answer without some partitions of the topic.
type incompleteError struct {
	text  string
	fewer bool
}

func (e incompleteError) Error() string { return e.text }

func answerFault(a address, u *url.URL, err error) error {
	f := describeAnswer(a, u, err)
	var long *http.MaxBytesError
	if errors.As(err, &long) || errors.Is(err, errKeepsTooMuch) || errors.Is(err, errTokenTooLong) ||
		errors.Is(err, errTextTooLong) {
		f.Cause = backlog.ErrTooLarge
	}
	return f
}

func describeAnswer(a address, u *url.URL, err error) *backlog.ReasonError {
	var partial incompleteError
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &partial):
		f := backlog.Errorf(backlog.ErrPartial, "%s from %s: %s", a.subject, u.Host, partial.text)
		if partial.fewer {
			f.Cause = errFewerPartitions
		}
		return f
	case errors.Is(err, errTooLarge):
		return backlog.Errorf(backlog.ErrImplausible,
			"%s says of %s: %s: is there a proxy in between that alters answers?", u.Host, a.subject, backlog.Quote(err.Error()))
	case errors.As(err, &long):
		return backlog.Errorf(backlog.ErrProtocol,
			"%s sent more than %d bytes for %s: remove unused subscriptions",
			u.Host, long.Limit, a.subject)
	case errors.Is(err, errKeepsTooMuch):
		return backlog.Errorf(backlog.ErrProtocol,
			"%s sent more for %s than may be kept of one answer (%d MiB): use fewer partitions, or shorter names",
			u.Host, a.subject, largestAnswer>>20)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return backlog.Errorf(backlog.ErrProtocol, "the answer of %s for %s is cut off: is %s://%s a Pulsar admin service?",
			u.Host, a.subject, u.Scheme, u.Host)
	default:
		return backlog.Errorf(backlog.ErrProtocol,
			"%s did not send the state of %s (%s): is %s://%s a Pulsar admin service?",
			u.Host, a.subject, backlog.Quote(err.Error()), u.Scheme, u.Host)
	}
}

// transportFault is the fault for a request without a complete answer; limit is its time limit, 0 to omit it.
func transportFault(a address, u *url.URL, err error, limit time.Duration) error {
	return backlog.Errorf(backlog.ErrUnreachable, "%s for %s: %s", u.Host, a.subject, transportCause(err, limit)).
		Because(err)
}

// certificateRefused is the fault for a handshake that the broker ended.
func certificateRefused(u *url.URL, err error, shown *auth.Transport) error {
	if !shown.ShowsCertificate() {
		return backlog.Errorf(backlog.ErrUnauthenticated,
			"%s requires a client certificate and none is configured (%s)", u.Host, tlsAlert(err))
	}
	return backlog.Errorf(backlog.ErrUnauthenticated,
		"%s does not accept the client certificate (%s): is it expired, or signed by an authority "+
			"that is not in the brokers' tlsTrustCertsFilePath?", u.Host, tlsAlert(err))
}

// openFault is the fault of a request to a host with an open breaker, whether or not it was sent. All of them have the
// same text, which does not change every second, since it is part of conditions.
func openFault(a address, u *url.URL, open *openState, cause error) error {
	return backlog.Errorf(open.reason, "%s for %s: %s, since %s: one request at a time tries it again, at least every %s",
		u.Host, a.subject, open.cause, open.since.UTC().Format(time.RFC3339), maxProbe).Because(cause)
}

// noTurnFault is the fault of a request without time left to wait for its turn, and why that did not come.
func noTurnFault(a address, u *url.URL, why string, err error) error {
	if errors.Is(err, context.Canceled) {
		return transportFault(a, u, err, 0)
	}
	return backlog.Errorf(backlog.ErrUnavailable, "%s for %s: not sent, %s", u.Host, a.subject, why).
		Because(errHeldBack)
}

// noMemoryFault is the fault of a large answer without time left to wait until others are decoded.
func noMemoryFault(a address, u *url.URL, err error) error {
	if errors.Is(err, context.Canceled) {
		return transportFault(a, u, err, 0)
	}
	return backlog.Errorf(backlog.ErrUnavailable,
		"%s for %s: its answer is large, and %d others were being read until the time was over: retried soon",
		u.Host, a.subject, largeAnswers).Because(errHeldBack)
}

// errNoChange marks the refusal of a change without effect.
var errNoChange = errors.New("no change")

// refusedChange is the fault if the worker answers a change with 400 and a reason.
func refusedChange(a address, u *url.URL, s errorAnswer) error {
	switch {
	case s.reason == "Update contains no change":
		return errNoChange
	case strings.HasSuffix(s.reason, " doesn't exist"): // a GET answers 404
		return backlog.Errorf(a.absent, "%s: %s", s.subject(a, u.Host), a.remedy)
	default:
		return backlog.Errorf(backlog.ErrUnsupported, "%s: see whether pulsar-admin can update its parallelism",
			s.subject(a, u.Host))
	}
}

func transportCause(err error, limit time.Duration) string {
	if text := tlsCause(err); text != "" {
		return text
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS: use http://"
	default:
		return backlog.ConnectionCause(err, limit)
	}
}

// tlsCause is empty if the error is not about TLS.
func tlsCause(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority: give the adapter the CA file"
	case errors.As(err, &name):
		return "its certificate is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &verification):
		return "its certificate is not valid: " + backlog.Quote(backlog.Innermost(verification.Err).Error())
	case errors.As(err, &record):
		return "it does not speak TLS: use http://"
	case tlsAlert(err) != "":
		return "TLS handshake failed: " + backlog.Quote(tlsAlert(err))
	default:
		return ""
	}
}

// tlsAlert is the alert with which the other side ended a handshake, empty if it did not. Its type is private to
// crypto/tls.
func tlsAlert(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}
