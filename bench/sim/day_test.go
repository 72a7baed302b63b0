// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
)

// day is the invented load of a working day in messages per second, a row every two minutes: more before noon and in
// the evening, a job at every full hour, and a campaign at 14:20.
func day() []byte {
	random := rand.New(rand.NewPCG(7, 7))
	bell := func(hour, middle, width float64) float64 {
		return math.Exp(-(hour - middle) * (hour - middle) / (width * width))
	}
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	var text bytes.Buffer
	text.WriteString("time,rate\n")
	for minute := 0; minute <= 24*60; minute += 2 {
		hour := float64(minute) / 60
		rate := 40 + 220*bell(hour, 11, 3) + 160*bell(hour, 19.5, 1.8)
		if minute%60 < 4 {
			rate += 90
		}
		if minute >= 14*60+20 && minute < 14*60+32 {
			rate += 500
		}
		rate *= 1 + 0.06*random.NormFloat64()
		fmt.Fprintf(&text, "%s,%.1f\n", start.Add(time.Duration(minute)*time.Minute).Format(time.RFC3339), math.Max(0, rate))
	}
	return text.Bytes()
}

func TestTheExampleIsADay(t *testing.T) {
	golden.Equal(t, *update, "day.csv", day())
	load, err := trace.Read(bytes.NewReader(day()), 10*time.Minute)
	require.NoError(t, err)
	require.Equal(t, 24*60*60, load.Seconds())
	require.Greater(t, load.Rate(14*3600+25*60), 400.0)
}
