// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

import "time"

// Course is a contender, second by second: its replicas, the age of the oldest message in seconds, and the messages
// that wait.
type Course struct {
	Name                      string
	Replicas, Oldest, Backlog []int32
}

// Courses are the charts of contenders on one load in messages per second, with an objective in seconds. Start is as in
// Chart.
func Courses(start time.Time, load []float64, objective float64, contenders []Course) []Chart {
	replicas := Chart{Title: "Replicas", Start: start, Panels: true}
	ages := Chart{Title: "Age of the oldest message", Unit: "s", Start: start, Panels: true, Objective: &objective}
	backlogs := Chart{Title: "Backlog", Unit: "messages", Start: start, Panels: true}
	for _, one := range contenders {
		steps := eachSecond(one.Name, one.Replicas)
		steps.Step = true
		replicas.Series = append(replicas.Series, steps)
		ages.Series = append(ages.Series, eachSecond(one.Name, one.Oldest))
		backlogs.Series = append(backlogs.Series, eachSecond(one.Name, one.Backlog))
	}
	return []Chart{
		{Title: "Load", Unit: "messages/s", Start: start, Series: []Series{eachSecond("arrivals", load)}},
		replicas, ages, backlogs,
	}
}
