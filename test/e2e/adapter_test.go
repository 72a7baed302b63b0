// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// TestAdapter tests the adapter as a process, in two parallel halves, because most of the time it waits.
func TestAdapter(t *testing.T) {
	t.Parallel()
	onStage(t)
	s := newSecured(t)
	t.Run("what takes its time", func(t *testing.T) {
		t.Parallel()
		t.Run("pattern signals", testPatternSignals)
	})
	t.Run("what takes CPU", func(t *testing.T) {
		t.Parallel()
		t.Run("function credentials", func(t *testing.T) { testFunctionCredentials(t, s) })
		t.Run("pattern scaling", testPatternScaling)
		t.Run("sink", testSink)
		t.Run("batch source", testBatchSource)
		t.Run("shared subscription", testSharedSubscription)
		t.Run("subscription type", testSubscriptionType)
	})
}
