// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueuesGoOnSideBySideAndStepsInTheirOrder(t *testing.T) {
	var order []string
	met := make(chan struct{})
	named := func(name string) step {
		return func(context.Context, io.Writer) error {
			order = append(order, name)
			return nil
		}
	}
	meets := func(context.Context, io.Writer) error { met <- struct{}{}; return nil }
	awaits := func(context.Context, io.Writer) error { <-met; return nil }
	require.NoError(t, run(t.Context(), io.Discard, []step{named("first"), meets, named("second")}, []step{awaits}))
	require.Equal(t, []string{"first", "second"}, order)
}

func TestAStepThatFailsEndsTheOthers(t *testing.T) {
	broken := errors.New("the disk is full")
	fails := func(context.Context, io.Writer) error { return broken }
	waits := func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return ctx.Err() }
	never := func(context.Context, io.Writer) error {
		t.Error("a step after one that failed")
		return nil
	}
	require.ErrorIs(t, run(t.Context(), io.Discard, []step{fails, never}, []step{waits, never}), broken)
}

func TestWhatIsPreparedHasAName(t *testing.T) {
	for _, what := range []string{"demo", "test", "all"} {
		queues, err := queuesFor([]string{what})
		require.NoError(t, err)
		require.Len(t, queues, 2, "what is built, and what is fetched")
	}
	for _, args := range [][]string{nil, {"tests"}, {"demo", "test"}} {
		_, err := queuesFor(args)
		require.ErrorContains(t, err, "must be demo, test or all")
	}
}
