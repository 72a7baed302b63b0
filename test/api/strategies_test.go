// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "testing"

func strategies(all ...any) fields {
	return functionPolicy(fields{"strategies": append([]any{}, all...)})
}

func TestStrategiesHaveTheirParametersAndNoOthers(t *testing.T) {
	const backlog = "backlogPerReplica must be set with type BacklogPerReplica, and only then"
	const rate = "ratePerReplica must be set with type RatePerReplica, and only then"
	const utilization = "utilization must be set with type Utilization, and only then"
	five := fields{"messages": int64(5)}
	try(t, map[string]attempt{
		"one of each": {strategies(
			fields{"type": "Capacity"}, fields{"type": "BacklogPerReplica", "backlogPerReplica": five},
			fields{"type": "RatePerReplica", "ratePerReplica": fields{"messagesPerSecond": "2500m"}},
			fields{"type": "Utilization", "utilization": fields{}},
		), ""},
		"none at all":            {strategies(), "should have at least 1 items"},
		"an unknown one":         {strategies(fields{"type": "CPU"}), `Unsupported value: "CPU"`},
		"one without a type":     {strategies(fields{"backlogPerReplica": five}), "type: Required value"},
		"a backlog with nothing": {strategies(fields{"type": "BacklogPerReplica"}), backlog},
		"a rate with nothing":    {strategies(fields{"type": "RatePerReplica"}), rate},
		"a share with nothing":   {strategies(fields{"type": "Utilization"}), utilization},
		"a backlog beside":       {strategies(fields{"type": "Capacity", "backlogPerReplica": five}), backlog},
		"a rate beside": {strategies(fields{
			"type":           "Capacity",
			"ratePerReplica": fields{"messagesPerSecond": "1"},
		}), rate},
		"a share beside": {strategies(fields{"type": "Capacity", "utilization": fields{}}), utilization},
		"the same twice": {
			strategies(fields{"type": "Capacity"}, fields{"type": "Capacity"}),
			"strategies must not have the same type twice",
		},
		"the same type, not same": {strategies(fields{"type": "BacklogPerReplica", "backlogPerReplica": five},
			fields{
				"type":              "BacklogPerReplica",
				"backlogPerReplica": fields{"messages": int64(9)},
			}), "strategies must not have the same type twice"},
		"more than there are": {strategies(
			fields{"type": "Capacity"}, fields{"type": "Capacity"}, fields{"type": "Capacity"}, fields{"type": "Capacity"},
			fields{"type": "Capacity"},
		), "must have at most 4 items"},
	})
}

func TestParametersOfStrategiesHaveBounds(t *testing.T) {
	const rates = "messagesPerSecond must be above 0 and at most 10^12, such as 100 or 2500m"
	backlog := func(messages any) fields {
		return strategies(fields{"type": "BacklogPerReplica", "backlogPerReplica": fields{"messages": messages}})
	}
	rate := func(perSecond any) fields {
		return strategies(fields{"type": "RatePerReplica", "ratePerReplica": fields{"messagesPerSecond": perSecond}})
	}
	share := func(percent int64) fields {
		return strategies(fields{"type": "Utilization", "utilization": fields{"targetPercent": percent}})
	}
	try(t, map[string]attempt{
		"one message a replica":    {backlog(int64(1)), ""},
		"no message a replica":     {backlog(int64(0)), "should be greater than or equal to 1"},
		"the most messages":        {backlog(int64(1e12)), ""},
		"more messages than that":  {backlog(int64(1e12) + 1), "should be less than or equal to"},
		"a whole rate":             {rate(int64(100)), ""},
		"a rate in thousandths":    {rate("2500m"), ""},
		"a rate with a fraction":   {rate("2.5"), ""},
		"the highest rate":         {rate("1T"), ""},
		"no rate":                  {rate("0"), rates},
		"a negative rate":          {rate(int64(-1)), rates},
		"a rate above the highest": {rate("1001G"), rates},
		"a rate in words":          {rate("many"), rates},
		"a backlog without a number": {
			strategies(fields{"type": "BacklogPerReplica", "backlogPerReplica": fields{}}), "messages: Required value",
		},
		"a rate without a number": {
			strategies(fields{"type": "RatePerReplica", "ratePerReplica": fields{}}), "messagesPerSecond: Required value",
		},
		"the least utilization": {share(1), ""},
		"no utilization":        {share(0), "should be greater than or equal to 1"},
		"the whole utilization": {share(100), ""},
		"more than that":        {share(101), "should be less than or equal to 100"},
	})
}
