// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestConnectionCause(t *testing.T) {
	get := func(cause error) error { return &url.Error{Op: "Get", URL: "http://pulsar:8080", Err: cause} }
	dial := func(cause error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: cause} }
	tests := map[string]struct {
		err   error
		limit time.Duration
		want  string
	}{
		"an unknown name":             {err: get(dial(&net.DNSError{IsNotFound: true})), want: "no such host"},
		"a name server that is away":  {err: dial(&net.DNSError{IsTimeout: true}), want: "its name could not be looked up"},
		"a closed port":               {err: get(dial(syscall.ECONNREFUSED)), want: "connection refused"},
		"a host that has no route":    {err: get(dial(syscall.EHOSTUNREACH)), want: "no route to host"},
		"a network that has no route": {err: get(dial(syscall.ENETUNREACH)), want: "no route to host"},
		"a deadline":                  {err: get(context.DeadlineExceeded), limit: time.Second, want: "no answer within 1s"},
		"a deadline of the caller":    {err: get(context.DeadlineExceeded), want: "no answer in time"},
		"a deadline inside of another error": {
			err: get(fmt.Errorf("reading: %w", context.DeadlineExceeded)), want: "no answer in time",
		},
		"a limit of the connection": {err: get(dial(os.ErrDeadlineExceeded)), want: "no answer in time"},
		"an incomplete answer": {
			err: io.ErrUnexpectedEOF, want: "the connection was closed before the answer was complete",
		},
		"a reset connection": {
			err: get(syscall.ECONNRESET), want: "the connection was closed before the answer was complete",
		},
		"another cause": {err: get(dial(errors.New("out of buffers\nand more"))), want: "out of buffers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, backlog.ConnectionCause(test.err, test.limit))
		})
	}
}

func TestABodyKeepsAnErrorOfTheConnection(t *testing.T) {
	errReset := errors.New("connection reset")
	for name, from := range map[string]io.Reader{
		"none":     strings.NewReader("1"),
		"an error": io.MultiReader(strings.NewReader("1"), iotest.ErrReader(errReset)),
	} {
		t.Run(name, func(t *testing.T) {
			body := &backlog.Body{ReadCloser: io.NopCloser(from)}
			got, err := io.ReadAll(body)
			require.Equal(t, "1", string(got))
			require.Equal(t, err, body.Broken)
			require.Equal(t, name == "an error", errors.Is(body.Broken, errReset))
		})
	}
}
