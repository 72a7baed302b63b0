// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

func TestTheStageClosesAllRunnersOfItsOwn(t *testing.T) {
	r := runners{byFunction: map[string]replica.Runner{}}
	closed := map[string]int{}
	for _, name := range []string{"first", "second"} {
		r.add("added-again", replica.NewLight(nil), func() { closed[name]++ })
	}
	r.add("of-the-test", replica.NewLight(nil), nil)
	r.close()
	r.close()
	require.Equal(t, map[string]int{"first": 1, "second": 1}, closed)
}
