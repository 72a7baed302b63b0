// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/faults"
)

// unanswered are the modes in which the broker does not answer, or not so that it could be read.
func unanswered() map[string]mode {
	const lasts = 2 * stale
	sustained := func(fault faults.Fault, text string) mode {
		return mode{fault: fault, answers: faults.Always, lasts: lasts, text: text}
	}
	core := func(m mode) mode {
		m.core = true
		return m
	}
	html := "<html><body>Sign in</body></html>"
	trace := "java.lang.NullPointerException\n" + strings.Repeat("\tat org.apache.pulsar\n", 1<<14)
	return map[string]mode{
		"hang":            core(sustained(faults.Hangs(nil), "no answer within 1s")),
		"slow":            sustained(faults.Delays(timeout/2), ""),
		"too-slow":        sustained(faults.Delays(2*timeout), "no answer within 1s"),
		"cut":             sustained(faults.Cuts(), "the connection was closed before the answer was complete"),
		"html":            sustained(faults.Says(http.StatusOK, "text/html", html), "content type text/html"),
		"garbage":         sustained(faults.Says(http.StatusOK, "application/json", "\x00\xff{["), "did not send the state"),
		"empty-object":    sustained(faults.Says(http.StatusOK, "application/json", "{}"), "is missing"),
		"400":             sustained(faults.Refuses(http.StatusBadRequest, "no"), `says "no"`),
		"401-html":        sustained(faults.Says(http.StatusUnauthorized, "text/html", html), "credentials refused"),
		"401-json":        sustained(faults.Refuses(http.StatusUnauthorized, "Unauthorized"), "grant consume"),
		"403-html":        sustained(faults.Says(http.StatusForbidden, "text/html", html), "does a proxy or a mesh"),
		"404-html":        sustained(faults.Says(http.StatusNotFound, "text/html", html), "a Pulsar admin service?"),
		"404-json":        core(sustained(faults.Refuses(http.StatusNotFound, "Topic not found"), "topic not found")),
		"429":             sustained(faults.Says(http.StatusTooManyRequests, "text/html", html), "httpRequestsMaxPerSecond"),
		"500":             sustained(faults.Says(http.StatusInternalServerError, "text/plain", trace), "answered 500"),
		"503-json":        sustained(faults.Refuses(http.StatusServiceUnavailable, "bundle is being unloaded"), "unloaded"),
		"503-html":        sustained(faults.Says(http.StatusServiceUnavailable, "text/html", html), "answers 503"),
		"504":             sustained(faults.Says(http.StatusGatewayTimeout, "text/html", html), "504"),
		"redirect-away":   core(sustained(faults.Redirects("http://elsewhere.example:80"), "is not an allowed Pulsar host")),
		"redirect-around": sustained(faults.RedirectsToItself(), "redirect"),
		"redirect-file":   sustained(faults.Redirects("file:///etc"), "redirect"),
		"gzip-bomb":       core(sustained(faults.Bomb(), "sent more than 67108864 bytes")),
		"depth-bomb":      sustained(faults.Nests(), "exceeded max depth"),
	}
}

// huge are the modes with answers that are good and huge. They take the processors, so that each runs alone.
func huge() map[string]mode {
	alone := func(fault faults.Fault, topics int) mode {
		return mode{fault: fault, answers: faults.Always, lasts: 2 * stale, topics: topics, alone: true}
	}
	return map[string]mode{
		"million-consumers":              alone(faults.Crowds(1_000_000), 1),
		"240000-consumers-of-20-topics":  alone(faults.Crowds(240_000), 20),
		"249000-subscriptions":           alone(faults.Litters(249_000), 1),
		"249000-subscriptions-16-topics": alone(faults.Litters(249_000), 16),
	}
}

// believed are the modes in which single numbers are wrong.
func believed() map[string]mode {
	once := func(fault faults.Fault) mode { return mode{fault: fault, answers: 1} }
	backlog := func(number int64) faults.Fault {
		return faults.EditsSubscriptions(func(s map[string]any) { s["msgBacklog"] = number })
	}
	return map[string]mode{
		"backlog-of-2^63-1-once":  {fault: backlog(math.MaxInt64), answers: 1, core: true},
		"backlog-of-10^12-once":   {fault: backlog(1e12), answers: 1},
		"counters-of-2^63-1-once": once(faults.Counters(faults.Constant(math.MaxInt64))),
		"counters-and-10^6-once":  {fault: faults.Counters(faults.Plus(1e6)), answers: 1, core: true},
		"counters-and-10^6-each-sixth": {
			fault: faults.EverySixth(faults.Counters(faults.Plus(1e6))), answers: faults.Always, lasts: time.Minute,
		},
		"counters-and-backlog-0-once": once(faults.CountersAndBacklog(faults.Constant(0))),
		"counters-0": {
			fault: faults.Counters(faults.Constant(0)), answers: faults.Always, lasts: 25 * time.Second,
		},
		"cached":         {fault: faults.Freezes(), answers: faults.Always, lasts: 25 * time.Second},
		"partitions-4-2": {fault: faults.Partitions(2), answers: faults.Always, lasts: 10 * time.Second, partitions: 4},
	}
}

func TestCoreFaults(t *testing.T) { runModes(t, true) }

func TestFaults(t *testing.T) { runModes(t, false) }

// runModes runs the modes of the core, or all others.
func runModes(t *testing.T, core bool) {
	theScene.Need(t)
	for _, modes := range []map[string]mode{huge(), unanswered(), believed()} {
		for name, m := range modes {
			if m.core != core {
				continue
			}
			t.Run(name, func(t *testing.T) {
				if !m.alone {
					t.Parallel()
				}
				m.run(t, named(name))
			})
		}
	}
}

// named makes a name of a mode one of an object.
func named(mode string) string { return "f-" + strings.ToLower(strings.ReplaceAll(mode, "^", "-")) }
