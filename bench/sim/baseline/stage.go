// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// After returns a stage of a pipeline with the output of the one before it as its load, each message one message. Our
// controller scales the one before, so that all controllers of the stage get the same load.
func After(before, stage model.Scenario, seed uint64) model.Scenario {
	system := model.New(before, seed)
	controller := newCapacity(system.Scenario())
	finished, outlooks := make([]float64, before.Seconds), make([]*policy.Outlook, before.Seconds)
	earlier := 0.0
	for second := range finished {
		system.Step()
		system.Scale(controller.Replicas(system))
		total := system.Score().Finished
		finished[second], earlier = total-earlier, total
		outlooks[second] = controller.decision.Outlook
	}
	last := before.Seconds - 1
	stage.Seconds, stage.Noise, stage.Exact = before.Seconds, 0, true
	stage.Rate = func(second float64) float64 { return finished[min(max(0, int(second)), last)] }
	stage.Upstream = func(second int) *policy.Outlook { return outlooks[min(second, last)] }
	return stage
}
