// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
)

// The parts.
const (
	partBeside = "beside"
	partOutage = "outage"
	partBurst  = "burst"
)

func parts() []string { return []string{partBeside, partOutage, partBurst} }

// options are the command line.
type options struct {
	parts, contenders []string
	// rate of the load in messages per second, and serviceTime of a message.
	rate        float64
	serviceTime time.Duration
	objective   time.Duration
	// first and second are the lengths of the two waves, and cooldown is KEDA's cooldownPeriod for all.
	first, second, cooldown time.Duration
	// targets of each contender in the outage, and its length.
	targets int
	outage  time.Duration
	// burst is how many ScaledObjects wake at once.
	burst int
	// jsonPath is a file; empty is none.
	jsonPath string
}

const (
	// pollingInterval is KEDA's default.
	pollingInterval = 30 * time.Second
	// defaultCooldown of KEDA and of policies is 5 times as long.
	defaultCooldown = time.Minute
	mostReplicas    = 12
	// startDelay is what a pod takes from its creation until its instance connects, with its image on the node.
	startDelay = 5 * time.Second
)

func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	var some, who string
	flags := command.Flags("keda", help)
	flags.StringVar(&some, "parts", strings.Join(parts(), ","), "parts to run, with commas between them")
	flags.StringVar(&who, "contenders", strings.Join(all(), ","), "contenders, with commas between them")
	flags.Float64Var(&o.rate, "rate", 200, "messages per second of the step, from 1 to 5000")
	flags.DurationVar(&o.serviceTime, "service-time", 20*time.Millisecond,
		"what a message costs a replica, from 1ms to 10s")
	flags.DurationVar(&o.objective, "objective", 30*time.Second, "how long a message may take, from 1s to 10m")
	flags.DurationVar(&o.first, "first", 2*time.Minute, "length of the first step, from 1s to 1h")
	flags.DurationVar(&o.second, "second", 3*time.Minute, "length of the second step, from 1s to 1h")
	flags.DurationVar(&o.cooldown, "cooldown", defaultCooldown,
		"cooldownPeriod of every contender, whole seconds from 1s to 1h; 5m is the default of KEDA and of policies")
	flags.IntVar(&o.targets, "targets", 8, "Functions of each contender in the outage, from 1 to 50")
	flags.DurationVar(&o.outage, "outage", 3*time.Minute, "length of the outage, from 1s to 1h")
	flags.IntVar(&o.burst, "burst", 300, "ScaledObjects that wake at once, from 1 to 5000")
	flags.StringVar(&o.jsonPath, "out", "", "file for the numbers as JSON; none when empty")
	if err := command.Parse(flags, args); err != nil {
		return options{}, err
	}
	o.parts, o.contenders = strings.Split(some, ","), strings.Split(who, ",")
	return o, o.validate()
}

func (o options) validate() error {
	if err := errors.Join(named("-parts", o.parts, parts()), named("-contenders", o.contenders, all())); err != nil {
		return err
	}
	for name, one := range map[string]struct{ is, least, most time.Duration }{
		"-service-time": {o.serviceTime, time.Millisecond, 10 * time.Second},
		"-objective":    {o.objective, time.Second, 10 * time.Minute},
		"-first":        {o.first, time.Second, time.Hour},
		"-second":       {o.second, time.Second, time.Hour},
		"-cooldown":     {o.cooldown, time.Second, time.Hour},
		"-outage":       {o.outage, time.Second, time.Hour},
	} {
		if one.is < one.least || one.is > one.most {
			return fmt.Errorf("%s is %s: it must be from %s to %s", name, one.is, one.least, one.most)
		}
	}
	const mostTargets, mostBurst, mostRate = 50, 5000, 5000
	switch {
	case o.targets < 1 || o.targets > mostTargets:
		return fmt.Errorf("-targets is %d: it must be from 1 to %d", o.targets, mostTargets)
	case o.burst < 1 || o.burst > mostBurst:
		return fmt.Errorf("-burst is %d: it must be from 1 to %d", o.burst, mostBurst)
	case !(o.rate >= 1 && o.rate <= mostRate):
		return fmt.Errorf("-rate is %g: it must be from 1 to %d", o.rate, mostRate)
	case o.enough() > mostReplicas:
		return fmt.Errorf("-rate is %g at %g messages per second and replica, %d replicas: at most %d may be there", o.rate,
			o.capacity(), o.enough(), mostReplicas)
	case o.cooldown%time.Second != 0:
		return fmt.Errorf("-cooldown is %s: it must be whole seconds", o.cooldown)
	}
	return nil
}

// named refuses names that are not known.
func named(flag string, names, known []string) error {
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s names %q: it may name %s", flag, name, strings.Join(known, ", "))
		}
	}
	return nil
}

func (o options) runs(part string) bool { return slices.Contains(o.parts, part) }

// of returns the contenders of a part.
func (o options) of(part string) (names []string) {
	for _, name := range contendersOf(part) {
		if slices.Contains(o.contenders, name) {
			names = append(names, name)
		}
	}
	return names
}

// capacity of a replica, in messages per second.
func (o options) capacity() float64 { return 1 / o.serviceTime.Seconds() }

// enough is how many replicas keep up with the step.
func (o options) enough() int { return int(math.Ceil(o.rate/o.capacity() - 1e-9)) }

// tuned is the threshold of an expert who knows what a replica can do: what it does in half the objective. The other
// half is for KEDA to notice and for the pod to start.
func (o options) tuned() int64 { return max(1, int64(o.capacity()*o.objective.Seconds()/2)) }
