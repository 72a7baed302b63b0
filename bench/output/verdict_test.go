// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheVerdictIsASentence(t *testing.T) {
	for name, test := range map[string]struct {
		objective, late, hours, others float64
		want                           string
	}{
		"fewer": {60, 0.003, 62, 100, "60 s objective met for 99.7% of messages, with 38% fewer replica-hours than KEDA"},
		"more": {
			300, 0, 150, 100, "5 min objective met for 100% of messages, with 50% more replica-hours than KEDA",
		},
		"as many": {
			90, 1, 100.4, 100, "90 s objective met for 0% of messages, with as many replica-hours as KEDA",
		},
		"100% means that none was late": {30, 1e-9, 1, 0, "30 s objective met for 99.99% of messages"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, Verdict(test.objective, test.late, test.hours, test.others, "KEDA"))
		})
	}
}
