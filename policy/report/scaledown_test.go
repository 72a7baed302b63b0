// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestTheStatusTellsWhatRemovedReplicasGaveBack(t *testing.T) {
	for name, test := range map[string]struct {
		before, after, later backlog.Measurement
		want                 *int64
	}{
		"consumers leave with the replicas": {backlog.Known(7), backlog.Known(27), backlog.Known(27), new(int64(20))},
		"nothing is redelivered":            {backlog.Known(7), backlog.Known(7), backlog.Known(7), new(int64(0))},
		"others leave long after":           {backlog.Known(7), backlog.Known(9), backlog.Known(500), new(int64(2))},
		"a counter that starts again":       {backlog.Known(7), backlog.Known(0), backlog.Known(0), new(int64(0))},
		"a type without a count":            {backlog.Unknown(nil), backlog.Unknown(nil), backlog.Unknown(nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			require.Nil(t, s.status.LastScaleDown)
			s.d.Reading.Redelivered = test.before
			s.goOn(time.Minute)
			s.o.Target.Replicas, s.d.Decision.Replicas = new(int32(4)), 4
			s.goOn(10 * time.Second)
			at := s.o.Now
			s.d.Reading.Redelivered = test.after
			s.goOn(2 * time.Minute)
			s.d.Reading.Redelivered = test.later
			s.goOn(5 * time.Minute)
			last := s.status.LastScaleDown
			require.NotNil(t, last)
			require.Equal(t, int32(6), last.RemovedReplicas)
			require.True(t, last.Time.Equal(&metav1.Time{Time: at}))
			require.Equal(t, test.want, last.RedeliveredMessages)
		})
	}
}
