// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReplicasHaveBounds(t *testing.T) {
	const order = "minReplicas must not be larger than maxReplicas"
	try(t, map[string]attempt{
		"no maxReplicas":         {functionPolicy(fields{"maxReplicas": nil}), "spec.maxReplicas: Required value"},
		"maxReplicas of nothing": {functionPolicy(fields{"maxReplicas": int64(0)}), "should be greater than or equal to 1"},
		"the most maxReplicas":   {functionPolicy(fields{"maxReplicas": int64(10000)}), ""},
		"too many maxReplicas": {
			functionPolicy(fields{"maxReplicas": int64(10001)}),
			"should be less than or equal to 10000",
		},
		"part of a replica":      {functionPolicy(fields{"maxReplicas": 2.5}), "must be of type integer"},
		"minReplicas of nothing": {functionPolicy(fields{"minReplicas": int64(0)}), ""},
		"minReplicas below that": {functionPolicy(fields{"minReplicas": int64(-1)}), "should be greater than or equal to 0"},
		"too many minReplicas": {
			functionPolicy(fields{"minReplicas": int64(10001), "maxReplicas": int64(10000)}),
			"should be less than or equal to 10000",
		},
		"min equal to max": {functionPolicy(fields{"minReplicas": int64(5)}), ""},
		"min above max":    {functionPolicy(fields{"minReplicas": int64(6)}), order},
	})
}

func TestSchedulesNarrowTheBoundsOfReplicas(t *testing.T) {
	with := func(changes fields) fields {
		schedule := fields{"name": "day", "start": "0 8 * * 1-5", "end": "0 18 * * MON-FRI", "minReplicas": int64(2)}
		for name, value := range changes {
			schedule[name] = value
			if value == nil {
				delete(schedule, name)
			}
		}
		return functionPolicy(fields{"schedules": []any{schedule}})
	}
	const within = "minReplicas and maxReplicas of schedules must be within minReplicas and maxReplicas of the policy"
	const cron = "must be a cron expression of five fields, such as 0 8 * * 1-5"
	const zone = "timeZone must be a name of the IANA database, such as Europe/Berlin"
	try(t, map[string]attempt{
		"a lower bound":  {with(nil), ""},
		"an upper bound": {with(fields{"minReplicas": nil, "maxReplicas": int64(1)}), ""},
		"both":           {with(fields{"maxReplicas": int64(2)}), ""},
		"a time zone":    {with(fields{"timeZone": "America/Argentina/Buenos_Aires"}), ""},
		"neither bound":  {with(fields{"minReplicas": nil}), "minReplicas or maxReplicas must be set, or both"},
		"min above max": {
			with(fields{"maxReplicas": int64(1)}), "minReplicas must not be larger than maxReplicas",
		},
		"min above the policy's max": {with(fields{"minReplicas": int64(6)}), within},
		"max below the policy's min": {with(fields{"minReplicas": nil, "maxReplicas": int64(0)}), "should be greater than or equal to 1"},
		"no start":                   {with(fields{"start": nil}), "start: Required value"},
		"no end":                     {with(fields{"end": nil}), "end: Required value"},
		"a start of six fields":      {with(fields{"start": "0 0 8 * * 1"}), cron},
		"an end of a word":           {with(fields{"end": "@daily"}), cron},
		"a time zone in the text":    {with(fields{"end": "TZ=UTC 0 18 * * *"}), cron},
		"the zone of the machine":    {with(fields{"timeZone": "Local"}), zone},
		"a zone with a space":        {with(fields{"timeZone": "Europe Berlin"}), zone},
		"an upper case name":         {with(fields{"name": "Day"}), "name must be lower case letters, digits and hyphens"},
		"no name":                    {with(fields{"name": nil}), "name: Required value"},
		"the same name twice": {
			functionPolicy(fields{"schedules": []any{nightly("night", 1), nightly("night", 2)}}),
			"schedules must not have the same name twice",
		},
	})
}

// nightly is a schedule that lowers maxReplicas.
func nightly(name string, maxReplicas int64) fields {
	return fields{"name": name, "start": "0 22 * * *", "end": "0 6 * * *", "maxReplicas": maxReplicas}
}

// TestAnApplyReplacesAllSchedules as that of a set does, which compares lists as a whole.
func TestAnApplyReplacesAllSchedules(t *testing.T) {
	onControlPlane(t)
	const name = "schedules"
	apply := func() {
		object := manifest(name, functionPolicy(fields{"schedules": []any{nightly("night", 1)}}))
		require.NoError(t, people.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object),
			client.FieldOwner("set"), client.ForceOwnership))
	}
	object := create(t, name, functionPolicy(nil))
	apply()
	require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	both := []any{nightly("night", 1), nightly("added", 2)}
	require.NoError(t, unstructured.SetNestedSlice(object.Object, both, "spec", "schedules"))
	require.NoError(t, people.Update(t.Context(), object, client.FieldOwner("user")))
	apply()
	require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	schedules, _, err := unstructured.NestedSlice(object.Object, "spec", "schedules")
	require.NoError(t, err)
	require.Len(t, schedules, 1)
}

// TestLatencyObjectiveIsADurationWithinADay in a policy and in a set's template: each mistake has one message, the fix.
func TestLatencyObjectiveIsADurationWithinADay(t *testing.T) {
	const bounds = "latencyObjective must be from 1s to 24h"
	const syntax = "latencyObjective must be a duration such as 30s, 5m or 24h"
	const text = `must be of type string: "integer"`
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"accepts the shortest":          {"1s", ""},
		"accepts the longest":           {"24h", ""},
		"accepts several units":         {"1h30m", ""},
		"accepts a fraction":            {"1.5h", ""},
		"accepts many milliseconds":     {"86400000ms", ""},
		"refuses less than a second":    {"999ms", bounds},
		"refuses zero":                  {"0s", bounds},
		"refuses a negative duration":   {"-5s", bounds},
		"refuses more than a day":       {"24h0m1s", bounds},
		"refuses what overflows":        {"99999999999h", bounds},
		"refuses a sum that overflows":  {"99999h99999h99999h99999h99999h", bounds},
		"refuses a word":                {"abc", syntax},
		"refuses several words":         {"a while", syntax},
		"refuses days":                  {"1d", syntax},
		"refuses the ISO 8601 form":     {"PT30S", syntax},
		"refuses a number without unit": {"30", syntax},
		"refuses a blank before a unit": {"30 s", syntax},
		"refuses a unit without number": {"s", syntax},
		"refuses microseconds":          {"5000000us", syntax},
		"refuses an empty text":         {"", syntax},
		"refuses a number":              {int64(60), text},
		"refuses more than 32 letters":  {strings.Repeat("1s", 17), "Too long: may not be more than 32 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			objective := fields{"latencyObjective": test.value}
			policyWant, setWant := test.want, test.want
			if test.want == syntax || test.want == bounds {
				policyWant = fmt.Sprintf(" is invalid: spec.latencyObjective: Invalid value: %q: %s", test.value, test.want)
				setWant = strings.Replace(policyWant, "spec.", "spec.template.spec.", 1)
			}
			try(t, map[string]attempt{"in a policy": {functionPolicy(objective), policyWant}})
			trySets(t, map[string]attempt{"in a set": {mediaSet(nil, nil, objective), setWant}})
		})
	}
}

func TestABudgetIsWithinItsBounds(t *testing.T) {
	spent := func(percent, window any) fields {
		return functionPolicy(fields{"objectivePercent": percent, "objectiveWindow": window})
	}
	const bounds = "objectiveWindow must be from 10m to 24h"
	try(t, map[string]attempt{
		"the smallest share":       {spent(int64(90), nil), ""},
		"all messages":             {spent(int64(100), nil), ""},
		"less than nine in ten":    {spent(int64(89), nil), "should be greater than or equal to 90"},
		"more than all":            {spent(int64(101), nil), "should be less than or equal to 100"},
		"the shortest window":      {spent(int64(99), "10m"), ""},
		"the longest window":       {spent(int64(99), "24h"), ""},
		"a window that is short":   {spent(int64(99), "9m59s"), bounds},
		"a window that is long":    {spent(int64(99), "24h0m1s"), bounds},
		"a window that overflows":  {spent(int64(99), "99999999999h"), bounds},
		"a window in days":         {spent(int64(99), "1d"), "objectiveWindow must be a duration such as 30m or 4h"},
		"a window without a share": {spent(nil, "1h"), "objectiveWindow needs objectivePercent"},
	})
}

func TestWordsAreThoseThatAreKnown(t *testing.T) {
	of := func(field, value string) fields { return functionPolicy(fields{field: value}) }
	try(t, map[string]attempt{
		"mode Auto":      {of("mode", "Auto"), ""},
		"mode Recommend": {of("mode", "Recommend"), ""},
		"mode Paused":    {of("mode", "Paused"), ""},
		"an unknown mode": {
			of("mode", "On"),
			`Unsupported value: "On": supported values: "Auto", "Recommend", "Paused"`,
		},
		"an empty mode":              {of("mode", ""), `Unsupported value: ""`},
		"actuator Auto":              {of("actuator", "Auto"), ""},
		"actuator HPA":               {of("actuator", "HPA"), ""},
		"replicas":                   {functionPolicy(fields{"replicas": int64(3)}), `unknown field "spec.replicas"`},
		"actuator Direct":            {of("actuator", "Direct"), ""},
		"an unknown actuator":        {of("actuator", "VPA"), `Unsupported value: "VPA"`},
		"conflictPolicy Refuse":      {of("conflictPolicy", "Refuse"), ""},
		"conflictPolicy TakeOver":    {of("conflictPolicy", "TakeOver"), ""},
		"an unknown conflict policy": {of("conflictPolicy", "Force"), `Unsupported value: "Force"`},
		"a window of nothing":        {functionPolicy(fields{"behavior": window(0)}), ""},
		"a window of an hour":        {functionPolicy(fields{"behavior": window(3600)}), ""},
		"a window of a day": {
			functionPolicy(fields{"behavior": window(86400)}),
			"should be less than or equal to 3600",
		},
		"a window before it began": {functionPolicy(fields{"behavior": window(-1)}), "should be greater than or equal to 0"},
		"a cooldown of nothing":    {functionPolicy(fields{"behavior": cooldown(0)}), ""},
		"a cooldown of a day":      {functionPolicy(fields{"behavior": cooldown(86400)}), ""},
		"a longer cooldown": {
			functionPolicy(fields{"behavior": cooldown(86401)}),
			"should be less than or equal to 86400",
		},
		"a cooldown before it": {
			functionPolicy(fields{"behavior": cooldown(-1)}),
			"should be greater than or equal to 0",
		},
		"a behavior without bounds": {functionPolicy(fields{"behavior": fields{}}), ""},
	})
}

func TestBehaviorHasTheFieldsOfAHorizontalPodAutoscaler(t *testing.T) {
	up := func(changes fields) fields { return functionPolicy(fields{"behavior": fields{"scaleUp": changes}}) }
	down := func(changes fields) fields { return functionPolicy(fields{"behavior": fields{"scaleDown": changes}}) }
	pods := func(changes fields) fields {
		return merge(fields{"type": "Pods", "value": int64(4), "periodSeconds": int64(60)}, changes)
	}
	policies := func(all ...any) fields { return up(fields{"policies": all}) }
	const (
		most, least = "should be less than or equal to ", "should be greater than or equal to "
		unknown     = "unknown field \"spec.behavior."
	)
	try(t, map[string]attempt{
		"a window of scale-up":      {up(fields{"stabilizationWindowSeconds": int64(3600)}), ""},
		"a longer window":           {up(fields{"stabilizationWindowSeconds": int64(3601)}), most + "3600"},
		"a window before it began":  {up(fields{"stabilizationWindowSeconds": int64(-1)}), least + "0"},
		"the smallest of policies":  {up(fields{"selectPolicy": "Min"}), ""},
		"no scale-up":               {up(fields{"selectPolicy": "Disabled"}), ""},
		"another selection":         {up(fields{"selectPolicy": "Off"}), `supported values: "Max", "Min", "Disabled"`},
		"no scale-down":             {down(fields{"selectPolicy": "Disabled"}), ""},
		"a selection of scale-down": {down(fields{"selectPolicy": "Min"}), `supported values: "Max", "Disabled"`},
		"a policy in replicas":      {policies(pods(nil)), ""},
		"a policy in percent":       {policies(pods(fields{"type": "Percent", "value": int64(100)})), ""},
		"four policies":             {policies(pods(nil), pods(nil), pods(nil), pods(nil)), ""},
		"five policies": {
			policies(pods(nil), pods(nil), pods(nil), pods(nil), pods(nil)), "must have at most 4 items",
		},
		"no policy":                   {up(fields{"policies": []any{}}), "should have at least 1 items"},
		"a policy in messages":        {policies(pods(fields{"type": "Messages"})), `supported values: "Pods", "Percent"`},
		"a policy of nothing":         {policies(pods(fields{"value": int64(0)})), least + "1"},
		"a policy of everything":      {policies(pods(fields{"value": int64(10001)})), most + "10000"},
		"a period of nothing":         {policies(pods(fields{"periodSeconds": int64(0)})), least + "1"},
		"a period of a day":           {policies(pods(fields{"periodSeconds": int64(86400)})), most + "1800"},
		"a policy without a period":   {policies(pods(fields{"periodSeconds": nil})), "periodSeconds: Required value"},
		"policies that remove, too":   {down(fields{"policies": []any{pods(nil)}}), unknown + `scaleDown.policies"`},
		"a tolerance, which none has": {up(fields{"tolerance": "0.1"}), unknown + `scaleUp.tolerance"`},
	})
}

func window(seconds int64) fields {
	return fields{"scaleDown": fields{"stabilizationWindowSeconds": seconds}}
}

func cooldown(seconds int64) fields {
	return fields{"scaleDown": fields{"cooldownPeriodSeconds": seconds}}
}

func TestPulsarIsReachedInOneWay(t *testing.T) {
	const url = "adminURL must be http://host:port or https://host:port, one host, with no path and no credentials"
	pulsar := func(connection fields) fields { return functionPolicy(fields{"pulsar": connection}) }
	tls := func(name, key any) fields {
		return pulsar(fields{"tlsConfig": merge(fields{}, fields{"certSecretName": name, "certSecretKey": key})})
	}
	try(t, map[string]attempt{
		"by HTTP":                  {pulsar(fields{"adminURL": "http://pulsar-broker.pulsar:8080"}), ""},
		"by HTTPS":                 {pulsar(fields{"adminURL": "https://pulsar-broker:8443/"}), ""},
		"by an address of IPv6":    {pulsar(fields{"adminURL": "http://[fd00::1]:8080"}), ""},
		"with a password":          {pulsar(fields{"adminURL": "http://admin:secret@pulsar:8080"}), url},
		"with a path":              {pulsar(fields{"adminURL": "http://pulsar:8080/admin/v2"}), url},
		"with a query":             {pulsar(fields{"adminURL": "http://pulsar:8080?a=b"}), url},
		"by the binary protocol":   {pulsar(fields{"adminURL": "pulsar://pulsar:6650"}), url},
		"by two hosts":             {pulsar(fields{"adminURL": "http://pulsar-0:8080,pulsar-1:8080"}), url},
		"by no host":               {pulsar(fields{"adminURL": "http://:8080"}), url},
		"by a host with a zone":    {pulsar(fields{"adminURL": "http://[::1%25.pulsar.svc]:8080"}), url},
		"by a host with blanks":    {pulsar(fields{"adminURL": "http://pulsar :8080"}), url},
		"by no port after a colon": {pulsar(fields{"adminURL": "http://pulsar:"}), url},
		"with an empty query":      {pulsar(fields{"adminURL": "http://pulsar:8080?"}), url},
		"with an empty user":       {pulsar(fields{"adminURL": "http://@pulsar:8080"}), url},
		"by a complete name":       {pulsar(fields{"adminURL": "http://pulsar_0.Pulsar.:8080"}), ""},
		"by a URL too long": {
			pulsar(fields{"adminURL": "http://" + strings.Repeat("p", 2048)}),
			"may not be more than 2048",
		},
		"with a Secret":             {pulsar(fields{"authSecret": "shop-token.v2"}), ""},
		"with an empty Secret":      {pulsar(fields{"authSecret": ""}), ""},
		"with a path to a Secret":   {pulsar(fields{"authSecret": "shop/token"}), "authSecret must be the name of a Secret"},
		"with a Secret in capitals": {pulsar(fields{"authSecret": "Token"}), "authSecret must be the name of a Secret"},
		"with a Secret's name too long": {
			pulsar(fields{"authSecret": strings.Repeat("s", 254)}), "may not be more than 253",
		},
		"with certificates":                 {tls("ca", "ca.crt"), ""},
		"with certificates without a key":   {tls("ca", nil), "spec.pulsar.tlsConfig.certSecretKey: Required value"},
		"with certificates without a name":  {tls(nil, "ca.crt"), "spec.pulsar.tlsConfig.certSecretName: Required value"},
		"with certificates of a file":       {tls("ca", "/etc/ca"), "certSecretKey must be a key of a Secret"},
		"with certificates under a path":    {tls("shop/ca", "ca.crt"), "certSecretName must be the name of a Secret"},
		"with certificates of an empty key": {tls("ca", ""), "should be at least 1 chars long"},
		"with certificates of no name":      {tls("", "ca.crt"), "should be at least 1 chars long"},
	})
}
