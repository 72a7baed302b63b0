// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"
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

func TestLatencyObjectiveIsADurationWithinADay(t *testing.T) {
	const bounds = "latencyObjective must be from 1s to 24h"
	objective := func(value any) fields { return functionPolicy(fields{"latencyObjective": value}) }
	try(t, map[string]attempt{
		"the shortest":       {objective("1s"), ""},
		"shorter":            {objective("999ms"), bounds},
		"none":               {objective("0s"), bounds},
		"negative":           {objective("-5s"), bounds},
		"the longest":        {objective("24h"), ""},
		"longer":             {objective("24h0m1s"), bounds},
		"in several units":   {objective("1h30m"), ""},
		"in words":           {objective("a while"), bounds},
		"as a number":        {objective(int64(60)), "must be of type string"},
		"as a long sequence": {objective(strings.Repeat("1s", 17)), "may not be more than 32"},
	})
}

func TestWordsAreThoseThatAreKnown(t *testing.T) {
	of := func(field, value string) fields { return functionPolicy(fields{field: value}) }
	try(t, map[string]attempt{
		"mode Auto":      {of("mode", "Auto"), ""},
		"mode Recommend": {of("mode", "Recommend"), ""},
		"mode Off":       {of("mode", "Off"), ""},
		"a mode nobody knows": {
			of("mode", "On"),
			`Unsupported value: "On": supported values: "Auto", "Recommend", "Off"`,
		},
		"an empty mode":            {of("mode", ""), `Unsupported value: ""`},
		"actuator Auto":            {of("actuator", "Auto"), ""},
		"actuator HPA":             {of("actuator", "HPA"), ""},
		"replicas":                 {functionPolicy(fields{"replicas": int64(3)}), `unknown field "spec.replicas"`},
		"actuator Direct":          {of("actuator", "Direct"), ""},
		"an actuator nobody knows": {of("actuator", "VPA"), `Unsupported value: "VPA"`},
		"conflictPolicy Refuse":    {of("conflictPolicy", "Refuse"), ""},
		"conflictPolicy TakeOver":  {of("conflictPolicy", "TakeOver"), ""},
		"a policy nobody knows":    {of("conflictPolicy", "Force"), `Unsupported value: "Force"`},
		"a window of nothing":      {functionPolicy(fields{"behavior": window(0)}), ""},
		"a window of an hour":      {functionPolicy(fields{"behavior": window(3600)}), ""},
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
		"with certificates of nobody":       {tls("", "ca.crt"), "should be at least 1 chars long"},
	})
}
