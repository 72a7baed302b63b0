// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// transportCause describes in a few words why there was no answer.
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

// refusesCertificate reports whether the other side ended a handshake because of our certificate, or the lack of one:
// the texts of these alerts contain "certificate" (RFC 8446 §6.2).
func refusesCertificate(err error) bool { return strings.Contains(tlsAlert(err), "certificate") }
