// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
)

// Implausible values.
const (
	maxRate     = 1e6 // messages per second
	maxMessages = 1e9
	maxDuration = 7 * 24 * time.Hour
	maxRepeats  = 10_000 // periods of a wave, bursts
	// replayGap is the longest time between two rows of a recording.
	replayGap = time.Hour
	// waveParts is the number of straight lines in a period of a wave.
	waveParts = 64
)

// Shape is a load over time: exactly one of its six forms. Tag unit is that of a number.
type Shape struct {
	// Duration of the load. Required, but for Replay, where it is the rest of the recording if absent.
	Duration metav1.Duration `json:"duration,omitzero"`
	// Constant is one rate.
	Constant *Constant `json:"constant,omitempty"`
	// Step is a rate with a step.
	Step *Step `json:"step,omitempty"`
	// Ramp is a rate that changes linearly.
	Ramp *Ramp `json:"ramp,omitempty"`
	// Wave is a rate that rises and falls periodically.
	Wave *Wave `json:"wave,omitempty"`
	// Burst is many messages within a short time.
	Burst *Burst `json:"burst,omitempty"`
	// Replay is a recorded rate.
	Replay *Replay `json:"replay,omitempty"`
	// Arrivals is how messages are spaced at a rate: Even (the default), Jittered or Poisson.
	Arrivals ArrivalProcess `json:"arrivals,omitempty"`
	// Seed of Jittered and Poisson: equal seeds give equal loads.
	Seed uint64 `json:"seed,omitempty"`
}

// ArrivalProcess is how messages are spaced at a rate.
type ArrivalProcess string

const (
	// Even spaces messages evenly.
	Even ArrivalProcess = "Even"
	// Jittered puts each message anywhere between its even time and the one before.
	Jittered ArrivalProcess = "Jittered"
	// Poisson makes messages arrive independently of each other, like those of many clients.
	Poisson ArrivalProcess = "Poisson"
)

// Constant is one rate.
type Constant struct {
	Rate float64 `json:"rate" unit:"messages per second"`
}

// Step is a rate that changes from one value to another at once.
type Step struct {
	// From is the rate at first, and To the one after At.
	From float64 `json:"from" unit:"messages per second"`
	To   float64 `json:"to" unit:"messages per second"`
	// At is the time of the step since the load began.
	At metav1.Duration `json:"at"`
	// Until is the time of the step back. Absent: there is none.
	Until metav1.Duration `json:"until,omitzero"`
}

// Ramp is a rate that changes linearly.
type Ramp struct {
	From float64 `json:"from" unit:"messages per second"`
	To   float64 `json:"to" unit:"messages per second"`
	// Begin and End of the change since the load began. Absent: those of the load.
	Begin metav1.Duration `json:"begin,omitzero"`
	End   metav1.Duration `json:"end,omitzero"`
}

// Wave is a rate that rises from Low to High and falls back, as a cosine does, in every period.
type Wave struct {
	Low    float64         `json:"low" unit:"messages per second"`
	High   float64         `json:"high" unit:"messages per second"`
	Period metav1.Duration `json:"period"`
}

// Burst is many messages within a short time, in addition to a constant rate.
type Burst struct {
	// Rate before, during and after it.
	Rate float64 `json:"rate,omitempty" unit:"messages per second"`
	// Messages of one burst, and the time Within which they are published. Absent: 1s.
	Messages float64         `json:"messages" unit:"messages"`
	Within   metav1.Duration `json:"within,omitzero"`
	// At is when it begins, and Every the period of repeated bursts. Absent: there is one.
	At    metav1.Duration `json:"at,omitzero"`
	Every metav1.Duration `json:"every,omitzero"`
}

// Replay is a recorded rate, from a CSV file with the header time,rate.
type Replay struct {
	// File next to the scenario or below it.
	File string `json:"file"`
	// Offset is where the load begins in the recording.
	Offset metav1.Duration `json:"offset,omitzero"`
	// Scale multiplies each rate. Absent: 1.
	Scale float64 `json:"scale,omitempty"`
}

// form is common to the six.
type form interface {
	// points validates the form and returns the points of straight lines until the end.
	points(end time.Duration) ([]point, error)
}

// Schedule validates the shape. Recordings are opened in files.
func (s Shape) Schedule(files fs.FS) (Schedule, error) {
	chosen, err := s.form(files)
	if err != nil {
		return Schedule{}, err
	}
	end := s.Duration.Duration
	if recorded, ok := chosen.(recording); ok && end == 0 {
		end = recorded.rest()
	}
	if end <= 0 || end > maxDuration {
		return Schedule{}, fmt.Errorf("load.duration is %s: it must be above 0 and at most %s", end, maxDuration)
	}
	points, err := chosen.points(end)
	if err != nil {
		return Schedule{}, fmt.Errorf("load.%w", err)
	}
	process := s.Arrivals
	switch process {
	case "":
		process = Even
	case Even, Jittered, Poisson:
	default:
		return Schedule{}, fmt.Errorf("load.arrivals is %q: it must be Even, Jittered or Poisson", process)
	}
	schedule := newSchedule(points, end)
	schedule.process, schedule.seed = process, s.Seed
	if schedule.total > maxMessages {
		return Schedule{}, fmt.Errorf("load is %.3g messages: it must be at most %g; lower the rates or load.duration",
			schedule.total, float64(maxMessages))
	}
	return schedule, nil
}

// form is the one that is set.
func (s Shape) form(files fs.FS) (form, error) {
	var set []form
	if s.Constant != nil {
		set = append(set, *s.Constant)
	}
	if s.Step != nil {
		set = append(set, *s.Step)
	}
	if s.Ramp != nil {
		set = append(set, *s.Ramp)
	}
	if s.Wave != nil {
		set = append(set, *s.Wave)
	}
	if s.Burst != nil {
		set = append(set, *s.Burst)
	}
	if s.Replay != nil {
		recorded, err := s.Replay.open(files)
		if err != nil {
			return nil, err
		}
		set = append(set, recorded)
	}
	if len(set) != 1 {
		return nil, fmt.Errorf("load has %d forms: set exactly one of constant, step, ramp, wave, burst and replay",
			len(set))
	}
	return set[0], nil
}

// recording is a Replay with its file.
type recording struct {
	Replay

	load trace.Load
}

func (r Replay) open(files fs.FS) (_ recording, err error) {
	file, err := files.Open(r.File)
	if err != nil {
		return recording{}, fmt.Errorf("load.replay.file: %w; it must be beside the scenario or below it", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	load, err := trace.Read(file, replayGap)
	if err != nil {
		return recording{}, fmt.Errorf("load.replay.file %s: %w", r.File, err)
	}
	return recording{Replay: r, load: load}, nil
}

// rest is the length of the recording after the offset.
func (r recording) rest() time.Duration {
	return min(maxDuration+1, time.Duration(r.load.Seconds())*time.Second-r.Offset.Duration)
}
