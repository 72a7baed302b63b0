// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// tests stands for a *testing.M.
type tests func() int

func (f tests) Run() int { return f() }

func TestAPartStartsAtMostOnceAndEndsWithTheProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("parts are for tests that -short skips")
	}
	started, stopped := 0, 0
	part := New("a part", func(context.Context) (string, error) {
		started++
		return "value", nil
	}, func(string) error { stopped++; return nil })
	unused := New("another", func(context.Context) (string, error) { return "", nil }, func(string) error {
		stopped++
		return nil
	})
	code := run(tests(func() int {
		require.Equal(t, "value", part.Need(t))
		require.Equal(t, "value", part.Need(t))
		require.Zero(t, stopped)
		return 7
	}), nil, []closer{part, unused})
	require.Equal(t, 7, code)
	require.Equal(t, 1, started)
	require.Equal(t, 1, stopped, "a part that no test needed is not ended")
}

func TestTestsDoNotRunAfterABuildFailed(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing is built with -short")
	}
	code := run(tests(func() int {
		t.Error("the tests ran")
		return 0
	}), func(context.Context) error { return errors.New("the compiler is missing") }, nil)
	require.Equal(t, 1, code)
}
