// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// After returns a stage of a pipeline with the output of the one before it as its load, each message one message, and
// the score of the one before. Where our controller scales that, the stage has its outlook.
func After(before, stage model.Scenario, scaledBy New, seed uint64) (model.Scenario, model.Score) {
	system := model.New(before, seed)
	controller := scaledBy(system.Scenario())
	ours, _ := controller.(*capacity)
	outlooks := make([]*policy.Outlook, before.Seconds)
	finished := system.Run(func(system *model.System) int {
		replicas := controller.Replicas(system)
		if ours != nil {
			outlooks[system.Second()] = ours.decision.Outlook
		}
		return replicas
	})
	last := before.Seconds - 1
	stage.Seconds, stage.Noise, stage.Exact = before.Seconds, 0, true
	stage.Rate = func(second float64) float64 { return finished[min(max(0, int(second)), last)] }
	stage.Upstream = func(second int) *policy.Outlook { return outlooks[min(second, last)] }
	return stage, system.Score()
}
