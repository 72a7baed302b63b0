// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestReplicasAreStarvedOnlyWhereAQueueExplainsIt(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*story)
		want   string
	}{
		"three of twelve hold all": {func(*story) {}, "ReplicasStarved"},
		"all hold messages": {
			func(s *story) { s.d.Reading.Holding = backlog.Known(12) }, "CatchingUp",
		},
		"it is unknown who holds them": {
			func(s *story) { s.d.Reading.Holding = backlog.Unknown(backlog.ErrNotRequested) }, "CatchingUp",
		},
		"others may still receive some": {
			func(s *story) { s.d.Reading.Undispatched = backlog.Known(600) }, "CatchingUp",
		},
		"the three process them in time": {
			func(s *story) { s.o.Policy.Spec.LatencyObjective.Duration = time.Minute }, "CatchingUp",
		},
		"keys decide who gets a message": {
			func(s *story) { s.d.Reading.Type = backlog.KeyShared }, "CatchingUp",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			s.d.Reading.Type, s.d.Reading.Consumers, s.d.Reading.Holding = backlog.Shared, backlog.Known(12), backlog.Known(3)
			s.d.Reading.Ready, s.d.Reading.Undispatched = backlog.Known(2914), backlog.Known(0)
			s.d.Decision.Wait = backlog.Known(2914.0 / (12 * 20))
			s.o.Policy.Spec.LatencyObjective.Duration = 30 * time.Second
			test.change(s)
			s.serve(policy.ObjectiveMissed)
			s.goOn(40 * time.Second)
			require.Equal(t, "False/"+test.want, s.says(v1alpha1.ConditionObjectiveMet))
		})
	}
}
