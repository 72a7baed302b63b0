// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/schedule"
)

// at is a time with its offset from UTC, so that hours that clocks show twice differ.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	now, err := time.Parse("2006-01-02 15:04:05 -0700", text)
	require.NoError(t, err)
	return now.UTC()
}

func spec(scaling v1alpha1.ScalingSpec) v1alpha1.AutoscalingPolicySpec {
	return v1alpha1.AutoscalingPolicySpec{ScalingSpec: scaling}
}

func days(name v1alpha1.ScheduleName, least, most *int32) v1alpha1.Schedule {
	return v1alpha1.Schedule{
		Name: name, TimeZone: "Europe/Berlin", Start: "0 8 * * 1-5", End: "0 18 * * 1-5",
		MinReplicas: least, MaxReplicas: most,
	}
}

func TestAScheduleIsActiveFromStartToEnd(t *testing.T) {
	t.Parallel()
	utc := v1alpha1.Schedule{Start: "0 8 * * *", End: "0 9 * * *"}
	night := v1alpha1.Schedule{Start: "0 22 * * *", End: "0 6 * * *"}
	weekend := v1alpha1.Schedule{Start: "0 20 * * FRI", End: "0 6 * * MON"}
	sunday := v1alpha1.Schedule{Start: "0 2 * * 0", End: "0 4 * * *"}
	workdays := v1alpha1.Schedule{Start: "0 8 * * 1-5", End: "0 18 * * *"}
	hourly := v1alpha1.Schedule{Start: "0 * * * *", End: "0 18 * * *"}
	twice := v1alpha1.Schedule{Start: "0 8,12 * * *", End: "0 18 * * *"}
	summer := v1alpha1.Schedule{Name: "gap", TimeZone: "Europe/Berlin", Start: "30 2 * * *", End: "0 10 * * *"}
	for name, tc := range map[string]struct {
		schedule v1alpha1.Schedule
		now      string
		active   bool
	}{
		"a second before the start":                      {days("day", nil, nil), "2026-11-27 07:59:59 +0100", false},
		"the start":                                      {days("day", nil, nil), "2026-11-27 08:00:00 +0100", true},
		"a second before the end":                        {days("day", nil, nil), "2026-11-27 17:59:59 +0100", true},
		"the end":                                        {days("day", nil, nil), "2026-11-27 18:00:00 +0100", false},
		"a day that it does not have":                    {days("day", nil, nil), "2026-11-28 12:00:00 +0100", false},
		"another offset in summer":                       {days("day", nil, nil), "2026-07-01 08:00:00 +0200", true},
		"UTC by default":                                 {utc, "2026-11-27 08:30:00 +0000", true},
		"across midnight":                                {night, "2026-11-27 03:00:00 +0000", true},
		"across the end of a week":                       {weekend, "2026-11-29 12:00:00 +0000", true},
		"before an hour that clocks leave out":           {summer, "2026-03-29 01:59:59 +0100", false},
		"a start in an hour that clocks leave out":       {summer, "2026-03-29 03:00:00 +0200", true},
		"the day before clocks leave out an hour":        {summer, "2026-03-28 12:00:00 +0100", false},
		"a start in an hour that clocks show twice":      {summer, "2026-10-25 02:30:00 +0200", true},
		"the second hour of the same name, before start": {summer, "2026-10-25 02:29:59 +0100", false},
		"the second hour of the same name, after start":  {summer, "2026-10-25 02:30:00 +0100", true},
		"after both":                                     {summer, "2026-10-25 03:00:00 +0100", true},
		"a weekly start with a daily end, days later":    {sunday, "2026-12-02 12:00:00 +0000", false},
		"a weekly start with a daily end, on its day":    {sunday, "2026-11-29 03:59:59 +0000", true},
		"a day without a start, with an end":             {workdays, "2026-11-28 12:00:00 +0000", false},
		"an end at each start":                           {hourly, "2026-11-27 09:30:00 +0000", true},
		"an end at the last start":                       {hourly, "2026-11-27 18:30:00 +0000", false},
		"between two starts":                             {twice, "2026-11-27 09:00:00 +0000", true},
		"after two starts and an end":                    {twice, "2026-11-27 18:00:00 +0000", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits, err := schedule.At(spec(v1alpha1.ScalingSpec{
				MaxReplicas: 10, Schedules: []v1alpha1.Schedule{tc.schedule},
			}), at(t, tc.now))
			require.NoError(t, err)
			require.Equal(t, tc.active, limits != nil)
		})
	}
}

func TestActiveSchedulesNarrowTheLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schedules []v1alpha1.Schedule
		want      *v1alpha1.Limits
	}{
		"none": {nil, nil},
		"a lower one": {
			[]v1alpha1.Schedule{days("a", new(int32(5)), nil)}, &v1alpha1.Limits{MinReplicas: 5, MaxReplicas: 20},
		},
		"an upper one": {[]v1alpha1.Schedule{days("a", nil, new(int32(3)))}, &v1alpha1.Limits{MinReplicas: 2, MaxReplicas: 3}},
		"the largest lower and the smallest upper one": {
			[]v1alpha1.Schedule{days("a", new(int32(5)), new(int32(9))), days("b", new(int32(4)), new(int32(8)))},
			&v1alpha1.Limits{MinReplicas: 5, MaxReplicas: 8},
		},
		"the upper one takes precedence": {
			[]v1alpha1.Schedule{days("a", new(int32(12)), nil), days("b", nil, new(int32(8)))},
			&v1alpha1.Limits{MinReplicas: 8, MaxReplicas: 8},
		},
		"never wider than the policy's": {
			[]v1alpha1.Schedule{days("a", new(int32(1)), new(int32(30)))}, &v1alpha1.Limits{MinReplicas: 2, MaxReplicas: 20},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want != nil {
				for _, s := range tc.schedules {
					tc.want.Schedules = append(tc.want.Schedules, s.Name)
				}
			}
			limits, err := schedule.At(spec(v1alpha1.ScalingSpec{
				MinReplicas: new(int32(2)), MaxReplicas: 20, Schedules: tc.schedules,
			}), at(t, "2026-11-27 12:00:00 +0100"))
			require.NoError(t, err)
			require.Equal(t, tc.want, limits)
		})
	}
}

func TestAMistakeInAScheduleLeavesTheRest(t *testing.T) {
	t.Parallel()
	limits, err := schedule.At(spec(v1alpha1.ScalingSpec{MaxReplicas: 20, Schedules: []v1alpha1.Schedule{
		{Name: "sunday", Start: "0 8 * * 7", End: "0 9 * * 7"}, days("backup", nil, new(int32(2))),
	}}), at(t, "2026-11-27 12:00:00 +0100"))
	require.ErrorContains(t, err, `schedule sunday: start "0 8 * * 7"`)
	want := v1alpha1.Limits{MinReplicas: 1, MaxReplicas: 2, Schedules: []v1alpha1.ScheduleName{"backup"}}
	require.Equal(t, &want, limits)
}

func TestAMistakeInAScheduleNamesIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schedule v1alpha1.Schedule
		says     string
	}{
		"an unknown time zone": {
			v1alpha1.Schedule{Name: "day", TimeZone: "Europe/Berlln", Start: "0 8 * * *", End: "0 9 * * *"},
			`schedule day: timeZone "Europe/Berlln" is not in the IANA database`,
		},
		"a minute that no hour has": {
			v1alpha1.Schedule{Name: "day", Start: "61 8 * * *", End: "0 9 * * *"},
			`schedule day: start "61 8 * * *" is no cron expression of five fields`,
		},
		"a day that no month has": {
			v1alpha1.Schedule{Name: "day", Start: "0 8 * * *", End: "0 9 30 2 *"},
			`schedule day: end "0 9 30 2 *" is no day of the next five years`,
		},
		"a word of other parsers": {
			v1alpha1.Schedule{Name: "day", Start: "@daily", End: "0 9 * * *"},
			`schedule day: start "@daily" is no cron expression of five fields`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scaling := v1alpha1.ScalingSpec{MaxReplicas: 10, Schedules: []v1alpha1.Schedule{tc.schedule}}
			_, err := schedule.At(spec(scaling), time.Unix(0, 0))
			require.ErrorContains(t, err, tc.says)
		})
	}
}
