// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheAdaptersCountersTellItsLooks(t *testing.T) {
	now, err := count([]byte(`# TYPE pulsar_autoscaler_source_requests_total counter
pulsar_autoscaler_source_requests_total{call="stats",result="ok"} 3
pulsar_autoscaler_source_requests_total{call="partitioned-stats-age",result="ok"} 4
pulsar_autoscaler_source_requests_total{call="partitions",result="ok"} 100
# TYPE pulsar_autoscaler_instance_scrapes_total counter
pulsar_autoscaler_instance_scrapes_total{result="ok"} 5
pulsar_autoscaler_instance_scrapes_total{result="error"} 1
# TYPE pulsar_autoscaler_provider_requests_total counter
pulsar_autoscaler_provider_requests_total{result="ok"} 8
# TYPE other gauge
other 2
`))
	require.NoError(t, err)
	require.Equal(t, tally{polls: 7, scrapes: 6, syncs: 8}, now)
	_, err = count([]byte("{"))
	require.Error(t, err)
}

func TestALookIsHeardOnce(t *testing.T) {
	var heard timetable
	require.False(t, heard.known())
	heard.add(0.05, tally{}, tally{polls: 1})
	heard.add(1, tally{polls: 1}, tally{polls: 2}) // the second request of the same poll
	heard.add(5, tally{polls: 2}, tally{polls: 2, scrapes: 1})
	require.False(t, heard.known())
	heard.add(10.125, tally{polls: 2, scrapes: 1}, tally{polls: 3, scrapes: 1, syncs: 1})
	require.Equal(t, timetable{Polls: []float64{0, 10}, Scrapes: []float64{4.875}, Syncs: []float64{10}}, heard)
	require.True(t, heard.known())
	require.NoError(t, heard.check())
}
