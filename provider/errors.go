// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/answer"
)

// statusError is the status for an error. Unknown is a 503: the HorizontalPodAutoscaler keeps its replicas and requests
// again at its next sync, 15 s later. client-go repeats a 429 or 5xx only if the response has a Retry-After header,
// which the API server sets from details.retryAfterSeconds: no status here has details.
//
// Source: client-go rest/with_retry.go (checkWait), apiserver responsewriters/writers.go (ErrorNegotiated).
func statusError(err error) *apierrors.StatusError {
	code, reason := statusOf(answer.ReasonOf(err))
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: answer.Text(err),
	}}
}

func statusOf(reason answer.Reason) (int32, metav1.StatusReason) {
	switch reason {
	case answer.NotFound:
		return http.StatusNotFound, metav1.StatusReasonNotFound
	case answer.Invalid:
		return http.StatusBadRequest, metav1.StatusReasonBadRequest
	case answer.Internal:
		return http.StatusInternalServerError, metav1.StatusReasonInternalError
	default:
		return http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	}
}
