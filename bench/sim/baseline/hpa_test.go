// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The cases are those of the Kubernetes documentation on the algorithm, tolerance and default behavior.
func TestTheHPAModelFollowsItsDocumentation(t *testing.T) {
	tests := map[string]struct {
		current  int
		wanted   float64
		behavior int
		without  int
	}{
		"twice the value doubles the replicas":                 {10, 20, 20, 20},
		"a ratio within a tenth changes nothing":               {10, 10.9, 10, 10},
		"a ratio just beyond does":                             {10, 11.1, 12, 12},
		"a fraction is rounded up":                             {2, 3.2, 4, 4},
		"up at most doubles at once":                           {10, 50, 20, 20},
		"a behavior allows four more, no behavior four in all": {1, 50, 5, 4},
		"never beyond maxReplicas":                             {80, 150, 100, 100},
		"never below minReplicas":                              {1, 0, 1, 1},
		"the first replicas count as a recommendation":         {10, 3, 10, 10},
		"it is off at zero":                                    {0, 3, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			with, without := hpa{window: Window{Seconds: 300}, behavior: true}, hpa{window: Window{Seconds: 300}}
			require.Equal(t, tt.behavior, with.sync(0, tt.current, tt.wanted, 1, 100), "with a behavior")
			require.Equal(t, tt.without, without.sync(0, tt.current, tt.wanted, 1, 100), "without")
		})
	}
}

func TestTheHPAModelHoldsTheLargestOfItsWindow(t *testing.T) {
	h := hpa{window: Window{Seconds: 300}, behavior: true}
	require.Equal(t, 10, h.sync(0, 10, 10, 1, 100))
	require.Equal(t, 10, h.sync(299, 10, 2, 1, 100), "ten were needed 299 s ago")
	require.Equal(t, 2, h.sync(301, 10, 2, 1, 100))
}

func TestTheHPAModelCountsItsPoliciesOverTheirPeriod(t *testing.T) {
	h := hpa{behavior: true}
	require.Equal(t, 5, h.sync(0, 1, 50, 1, 100))
	require.Equal(t, 5, h.sync(5, 5, 50, 1, 100), "four were added 5 s ago")
	require.Equal(t, 10, h.sync(15, 5, 50, 1, 100))
}

func TestWithoutABehaviorAnOldRecommendationStillComes(t *testing.T) {
	h := hpa{window: Window{Seconds: 300}}
	require.Equal(t, 4, h.sync(0, 1, 50, 1, 100))
	require.Equal(t, 8, h.sync(15, 4, 4, 1, 100), "fifty were wanted 15 s ago")
	require.Equal(t, 50, h.sync(290, 32, 4, 1, 100))
}

// recording is what test/cluster recorded of the real controller.
type recording struct {
	Kubernetes string
	Runs       []struct {
		Name              string
		Behavior          bool
		DownWindowSeconds float64
		Min, Max          int
		Syncs             []struct {
			Second float64
			Value  *float64
			Before int
		}
	}
}

func TestTheHPAModelMatchesTheRealController(t *testing.T) {
	text, err := os.ReadFile("testdata/hpa.json")
	require.NoError(t, err)
	var recorded recording
	require.NoError(t, json.Unmarshal(text, &recorded))
	require.Len(t, recorded.Runs, 2)
	for _, run := range recorded.Runs {
		t.Run(run.Name, func(t *testing.T) {
			require.Greater(t, len(run.Syncs), 60)
			h := hpa{behavior: run.Behavior, window: Window{Seconds: run.DownWindowSeconds}}
			ups, downs, held := 0, 0, 0
			for i, look := range run.Syncs[:len(run.Syncs)-1] {
				after := run.Syncs[i+1].Before
				if look.Value == nil {
					require.Equal(t, look.Before, after, "without a metric nothing changes, at %.1f s", look.Second)
					held++
					continue
				}
				require.Equal(t, after, h.sync(look.Second, look.Before, *look.Value, run.Min, run.Max),
					"%d and a metric of %.1f at %.1f s", look.Before, *look.Value, look.Second)
				switch {
				case after > look.Before:
					ups++
				case after < look.Before:
					downs++
				}
			}
			require.GreaterOrEqual(t, ups, 4, "the recording has to show how it goes up")
			require.GreaterOrEqual(t, downs, 2, "and down")
			require.Positive(t, held, "and what it does without a metric")
		})
	}
}
