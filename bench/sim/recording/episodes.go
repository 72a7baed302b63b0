// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// The names of the episodes.
const (
	LargestRise = "largest-rise"
	TypicalDay  = "typical-day"
	RandomDay   = "random-day"
)

const (
	hour       = 3600.0
	hoursOfDay = 24
	daySeconds = hoursOfDay * hour
	// episodeSeconds is the length of an episode.
	episodeSeconds = 6 * hour
	// riseSeconds is the time before and after a rise over which the load is averaged.
	riseSeconds = hour / 2
	// wholeDay is how much of a day must be known.
	wholeDay = 23 * hour
)

// Episode is a part of a recording without a gap.
type Episode struct {
	Name    string
	Seconds int

	load part
	from float64
}

// Rate in messages per second at a second of the episode.
func (e Episode) Rate(second float64) float64 { return e.load.Rate(e.from + second) }

// Peak is the highest rate of a row.
func (e Episode) Peak() float64 {
	highest := max(e.Rate(0), e.Rate(float64(e.Seconds)))
	for second, rate := range e.load.Rows() {
		if second >= e.from && second <= e.from+float64(e.Seconds) {
			highest = max(highest, rate)
		}
	}
	return highest
}

// Episodes of 6 hours around the largest rise of the recording, of a typical day, and of a random other day. A rise is
// from the mean of half an hour to that of the next. The typical day has the hourly means that are nearest to their
// medians over all days. Days of which more than an hour is unknown do not count; without any there is only the first
// episode.
func (r Recording) Episodes(random *rand.Rand) ([]Episode, error) {
	rises := r.rises()
	if len(rises) == 0 {
		return nil, errors.New("no 6 hours are without a gap")
	}
	largest := slices.MaxFunc(slices.SortedFunc(maps.Values(rises), riseOrder), func(a, b rise) int {
		return cmp.Compare(a.by, b.by)
	})
	episodes := []Episode{r.around(LargestRise, largest)}
	days := r.days()
	maps.DeleteFunc(days, func(number int, d day) bool {
		_, hasRise := rises[number]
		return !hasRise || d.known() < wholeDay
	})
	if len(days) == 0 {
		return episodes, nil
	}
	typical := typicalDay(days)
	episodes = append(episodes, r.around(TypicalDay, rises[typical]))
	delete(days, typical)
	delete(days, r.day(r.parts[largest.part].begin+largest.at))
	if others := slices.Sorted(maps.Keys(days)); len(others) > 0 {
		episodes = append(episodes, r.around(RandomDay, rises[others[random.IntN(len(others))]]))
	}
	return episodes, nil
}

// rise of the load at a second of a part, in messages per second.
type rise struct {
	part   int
	at, by float64
}

func riseOrder(a, b rise) int { return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.at, b.at)) }

// rises are the largest of each day, in parts that are long enough for an episode.
func (r Recording) rises() map[int]rise {
	largest := map[int]rise{}
	length := max(riseSeconds, r.interval)
	for i, p := range r.parts {
		if p.length() < episodeSeconds {
			continue
		}
		for _, at := range p.at {
			if at < length || at > p.length()-length {
				continue
			}
			number := r.day(p.begin + at)
			one := rise{part: i, at: at, by: (p.messages(at, at+length) - p.messages(at-length, at)) / length}
			if before, known := largest[number]; !known || one.by > before.by {
				largest[number] = one
			}
		}
	}
	return largest
}

// around is the episode with a rise in its middle, or nearer to its end where a gap is near.
func (r Recording) around(name string, one rise) Episode {
	p := r.parts[one.part]
	from := min(max(0, one.at-episodeSeconds/2), p.length()-episodeSeconds)
	return Episode{Name: name, Seconds: episodeSeconds, load: p, from: from}
}

// day has the messages and the known seconds of each of its hours.
type day struct{ messages, seconds [hoursOfDay]float64 }

func (d day) known() float64 {
	sum := 0.0
	for _, s := range d.seconds {
		sum += s
	}
	return sum
}

// mean rate of an hour; false if all of it is unknown.
func (d day) mean(hour int) (rate float64, known bool) {
	if d.seconds[hour] == 0 {
		return 0, false
	}
	return d.messages[hour] / d.seconds[hour], true
}

// day is the number of the day of a second of the recording.
func (r Recording) day(second float64) int {
	return int(math.Floor((r.midnight + second) / daySeconds))
}

func (r Recording) days() map[int]day {
	days := map[int]day{}
	for _, p := range r.parts {
		start := r.midnight + p.begin
		for at := int(math.Floor(start / hour)); float64(at)*hour < start+p.length(); at++ {
			begin := float64(at)*hour - start
			from, to := max(0, begin), min(p.length(), begin+hour)
			number := at / hoursOfDay
			one := days[number]
			one.messages[at%hoursOfDay] += p.messages(from, to)
			one.seconds[at%hoursOfDay] += to - from
			days[number] = one
		}
	}
	return days
}

// typicalDay is the number of the day that is nearest to the median of all, hour by hour; the earliest of several.
func typicalDay(days map[int]day) int {
	numbers := slices.Sorted(maps.Keys(days))
	away := map[int]float64{}
	for hour := range hoursOfDay {
		var means []float64
		for _, number := range numbers {
			if mean, known := days[number].mean(hour); known {
				means = append(means, mean)
			}
		}
		for _, number := range numbers {
			if mean, known := days[number].mean(hour); known {
				away[number] += math.Abs(mean - median(means))
			}
		}
	}
	return slices.MinFunc(numbers, func(a, b int) int { return cmp.Compare(away[a], away[b]) })
}
