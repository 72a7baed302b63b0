// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	bench "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// played is a demo that was measured.
type played struct {
	scenario

	begun              time.Time
	samples            []sample
	messages           load.Result
	pulsar, kubernetes string
}

// result is one of kubectl-pap bench run, with the policy as the only contender.
func (p played) result() (r run.Result, err error) {
	length := p.fall().Seconds()
	c := run.Contender{
		Name: "policy", Begun: p.begun.UTC().Truncate(time.Second), LatencyFrom: run.Processing, Messages: p.messages,
		Setting: fmt.Sprintf("AutoscalingPolicy, latencyObjective %s, 1 to %d replicas, each a %s of %s a message; "+
			"Pulsar %s, Kubernetes %s", p.objective, p.maxReplicas, p.replica, p.serviceTime, p.pulsar, p.kubernetes),
	}
	for _, one := range p.samples {
		c.Samples, length = append(c.Samples, one.Sample), one.Seconds
	}
	if c.Usage, err = run.UsageOf(c.Samples, length); err != nil {
		return run.Result{}, err
	}
	return run.Result{
		APIVersion: bench.APIVersion, Kind: run.ResultKind, Scenario: "demo", Run: p.begun.UTC().Format("20060102-150405"),
		Begun: c.Begun, Differs: p.differs(), LatencyObjectiveSeconds: p.objective.Seconds(),
		LoadSeconds: p.fall().Seconds(), WatchSeconds: rounded(length - p.fall().Seconds()),
		Contenders: []run.Contender{c}, Verdict: p.verdict(c),
	}, nil
}

// verdict is that replicas followed the load, and that no message was lost.
func (p played) verdict(c run.Contender) run.Verdict {
	reaction, rose := p.reaction()
	up := run.Check{Name: "reaction", Limit: (p.busy + patience).String(), Measured: "no scale-up", Met: rose}
	if rose {
		up.Measured = fmt.Sprintf("%.1fs", reaction)
	}
	down := run.Check{Name: "replicas at the end", Limit: "1", Measured: "unknown"}
	for _, one := range c.Samples {
		if one.SpecReplicas != nil {
			down.Measured, down.Met = strconv.Itoa(*one.SpecReplicas), *one.SpecReplicas == 1
		}
	}
	missing := c.Messages.Missing
	lost := run.Check{
		Name: "messages without a result", Limit: "0", Measured: strconv.FormatInt(missing, 10), Met: missing == 0,
	}
	v := run.Verdict{Outcome: run.Met, Checks: []run.Check{up, down, lost}}
	if failed(v) != nil {
		v.Outcome = run.Missed
	}
	return v
}

// reaction is the time in seconds from the step up of the load to the first larger spec.replicas.
func (p played) reaction() (seconds float64, rose bool) {
	before := 0
	for _, one := range p.samples {
		switch since := one.Seconds - p.calm.Seconds(); {
		case one.SpecReplicas == nil:
		case since <= 0:
			before = *one.SpecReplicas
		case *one.SpecReplicas > before:
			return since, true
		}
	}
	return 0, false
}

// failed has the checks that were not met; nil if all were.
func failed(v run.Verdict) error {
	var missed []error
	for _, check := range v.Checks {
		if !check.Met {
			missed = append(missed, fmt.Errorf("%s: %s, where the limit is %s", check.Name, check.Measured, check.Limit))
		}
	}
	return errors.Join(missed...)
}
