// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package response

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestErrorsOfReadersHaveAReason(t *testing.T) {
	down := errors.New("unreachable: the broker does not answer")
	for name, tt := range map[string]struct {
		err           error
		reason        Reason
		text          string
		misconfigured bool
	}{
		"an object that does not exist": {
			Unread(`Function "resize"`, apierrors.NewNotFound(v1alpha1.GroupResource(), "resize")),
			NotFound, `Function "resize" not found`, true,
		},
		"a function that does not exist": {
			Unread("function a/b/c", fmt.Errorf("%w: a/b/c", backlog.ErrFunctionNotFound)),
			NotFound, "function not found: a/b/c", true,
		},
		"an unsupported object": {
			Unread("x", backlog.ErrUnsupported), Unsupported, backlog.ErrUnsupported.Error(), true,
		},
		"more topics than are allowed": {
			Unread("x", backlog.ErrTooManyTopics), Unsupported, backlog.ErrTooManyTopics.Error(), true,
		},
		"a broker that is down":     {Unread("x", down), Unknown, down.Error(), false},
		"an error without a reason": {down, Internal, down.Error(), false},
		"a wrapped error":           {fmt.Errorf("reading: %w", Errorf(Busy, "busy")), Busy, "reading: busy", false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.reason, ReasonOf(tt.err))
			require.Contains(t, Reasons(), tt.reason)
			require.EqualError(t, tt.err, tt.text)
			require.Equal(t, tt.misconfigured, IsMisconfigured(tt.err))
		})
	}
	require.Empty(t, ReasonOf(nil))
}

func TestTextsAreShortLines(t *testing.T) {
	text := Text(Errorf(Unknown, "two\n\x00 lines %s\xff", strings.Repeat("ü", 600)))
	require.LessOrEqual(t, len(text), MaxTextBytes)
	require.True(t, strings.HasPrefix(text, "two lines ü"), text)
	require.True(t, strings.HasSuffix(text, "ü..."), text)
}
