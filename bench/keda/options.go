// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
)

// The parts.
const (
	partOutage = "outage"
	partBurst  = "burst"
)

func parts() []string { return []string{partOutage, partBurst} }

// options are the command line.
type options struct {
	parts, contenders []string
	// cooldown is KEDA's cooldownPeriod for all contenders.
	cooldown time.Duration
	// targets of each contender in the outage, and the length of the outage.
	targets int
	outage  time.Duration
	// burst is the number of ScaledObjects that wake at once.
	burst int
	// jsonPath is a file; empty is none.
	jsonPath string
}

const (
	// pollingInterval is KEDA's default.
	pollingInterval = 30 * time.Second
	// defaultCooldown is shorter than the default of KEDA and of policies, which is 5 minutes.
	defaultCooldown = time.Minute
	mostReplicas    = 12
)

func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	var some, who string
	flags := command.Flags("keda", help)
	flags.StringVar(&some, "parts", strings.Join(parts(), ","), "parts to run, with commas between them")
	flags.StringVar(&who, "contenders", strings.Join(all(), ","), "contenders, with commas between them")
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
	for name, is := range map[string]time.Duration{"-cooldown": o.cooldown, "-outage": o.outage} {
		if is < time.Second || is > time.Hour {
			return fmt.Errorf("%s is %s: it must be from 1s to 1h0m0s", name, is)
		}
	}
	const mostTargets, mostBurst = 50, 5000
	switch {
	case o.targets < 1 || o.targets > mostTargets:
		return fmt.Errorf("-targets is %d: it must be from 1 to %d", o.targets, mostTargets)
	case o.burst < 1 || o.burst > mostBurst:
		return fmt.Errorf("-burst is %d: it must be from 1 to %d", o.burst, mostBurst)
	case o.cooldown%time.Second != 0:
		return fmt.Errorf("-cooldown is %s: it must be whole seconds", o.cooldown)
	}
	return nil
}

// named rejects unknown names.
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
