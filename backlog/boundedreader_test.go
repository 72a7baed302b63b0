// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestBoundedReader(t *testing.T) {
	errReset := errors.New("connection reset")
	tests := map[string]struct {
		from        io.Reader
		want        string
		err, broken error
	}{
		"reads up to the limit": {from: strings.NewReader("12345678"), want: "12345678"},
		"fails above the limit": {from: strings.NewReader("123456789"), want: "123456789", err: TooLongError{Limit: 8}},
		"remembers an error of the connection": {
			from: io.MultiReader(strings.NewReader("1"), iotest.ErrReader(errReset)), want: "1", err: errReset, broken: errReset,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewBoundedReader(tt.from, 8)
			got, err := io.ReadAll(r)
			require.Equal(t, tt.want, string(got))
			require.Equal(t, tt.err, err)
			require.Equal(t, tt.broken, r.Broken())
		})
	}
}
