// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

// mostPoints bounds the drawn points of a series: several for each pixel, so that a week of samples opens at once.
const mostPoints = 8000

// thin keeps the least and the largest value of each run of points, and a gap if there is one, so that no peak is lost.
// A series of few points is not changed.
func (s Series) thin() Series {
	if len(s.Seconds) <= mostPoints {
		return s
	}
	const perRun = 3 // the least, the largest and a gap
	length := (len(s.Seconds)*perRun + mostPoints - 1) / mostPoints
	thinned := Series{Name: s.Name, Step: s.Step}
	for from := 0; from < len(s.Seconds); from += length {
		for i, keep := range kept(s.Values[from:min(from+length, len(s.Values))]) {
			if keep {
				thinned.Seconds = append(thinned.Seconds, s.Seconds[from+i])
				thinned.Values = append(thinned.Values, s.Values[from+i])
			}
		}
	}
	return thinned
}

// kept reports for each value of a run whether it is drawn.
func kept(run []*float64) []bool {
	keep := make([]bool, len(run))
	least, largest, gap := -1, -1, -1
	for i, value := range run {
		switch {
		case value == nil:
			gap = i
			continue
		case least < 0:
			least, largest = i, i
		case *value < *run[least]:
			least = i
		case *value > *run[largest]:
			largest = i
		}
	}
	for _, i := range []int{least, largest, gap} {
		if i >= 0 {
			keep[i] = true
		}
	}
	return keep
}
