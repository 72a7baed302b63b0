// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"sort"
	"strings"
	"time"
	_ "time/tzdata" // time zones exist wherever this runs

	"github.com/robfig/cron/v3"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// At returns the limits that hold at a time; nil for those of the spec, while no schedule is active. With an error, a
// user has to correct a schedule, and the limits are those of the rest.
func At(spec v1alpha1.AutoscalingPolicySpec, now time.Time) (_ *v1alpha1.Limits, mistake error) {
	limits := v1alpha1.Limits{MinReplicas: policy.MinReplicas(spec), MaxReplicas: spec.MaxReplicas}
	for _, s := range spec.Schedules {
		active, err := isActive(s, now)
		if err != nil && mistake == nil {
			mistake = fmt.Errorf("schedule %s: %w", s.Name, err)
		}
		if !active {
			continue
		}
		limits.Schedules = append(limits.Schedules, s.Name)
		if s.MinReplicas != nil {
			limits.MinReplicas = max(limits.MinReplicas, *s.MinReplicas)
		}
		if s.MaxReplicas != nil {
			limits.MaxReplicas = min(limits.MaxReplicas, *s.MaxReplicas)
		}
	}
	if limits.Schedules == nil {
		return nil, mistake // no schedule is active, which is usual
	}
	limits.MinReplicas = min(limits.MinReplicas, limits.MaxReplicas)
	return &limits, mistake
}

// isActive reports whether there was no end since the last start.
func isActive(s v1alpha1.Schedule, now time.Time) (bool, error) {
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return false, fmt.Errorf("timeZone %q is not in the IANA database of this version, correct it: %w", s.TimeZone, err)
	}
	local := now.In(zone)
	// What the clock shows, as if it were UTC: no start or end is left out where clocks are set forward.
	clock := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), 0, time.UTC)
	starts, err := parse("start", s.Start, clock)
	if err != nil {
		return false, err
	}
	ends, err := parse("end", s.End, clock)
	if err != nil {
		return false, err
	}
	start, started := last(starts, clock)
	return started && ends.Next(start.Add(-time.Second)).After(clock), nil // an end at the time of a start counts
}

// parse returns the times of a cron expression, of which there is one after now.
func parse(field string, expression v1alpha1.CronExpression, now time.Time) (cron.Schedule, error) {
	if strings.Contains(string(expression), "=") { // the parser reads TZ=, and panics without a space after it
		return nil, fmt.Errorf("%s %q is no cron expression of five fields, correct it", field, expression)
	}
	times, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(string(expression))
	if err != nil {
		return nil, fmt.Errorf("%s %q is no cron expression of five fields, correct it: %w", field, expression, err)
	}
	if times.Next(now).IsZero() {
		return nil, fmt.Errorf("%s %q is no day of the next five years, correct it", field, expression)
	}
	return times, nil
}

// last is the last of the times that is not after now, within the five years for which cron looks ahead.
func last(times cron.Schedule, now time.Time) (at time.Time, found bool) {
	most := int(now.Sub(now.AddDate(-5, 0, 0)).Minutes())
	ago := func(minutes int) time.Time { return times.Next(now.Add(-time.Duration(minutes) * time.Minute)) }
	least := sort.Search(most, func(i int) bool {
		next := ago(i + 1) // the times are full minutes
		return !next.IsZero() && !next.After(now)
	})
	return ago(least + 1), least < most
}
