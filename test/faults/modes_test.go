// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/faults"
)

// modes are the ways in which answers reach a decision: none at all, late, cut, of a host that fails, huge, and with
// wrong numbers. TestFaultsOnTheWay and TestAnswersBecomeReasons of backlog/pulsar have every error and its text,
// TestManyHugeAnswersAtOnceTakeLittleMemory the sizes, and TestWrongAnswersDecideNothing of backlog/poll the numbers.
func modes() map[string]mode {
	lasting := func(fault faults.Fault, text string) mode { return mode{fault: fault, lasts: true, text: text} }
	core := func(m mode) mode {
		m.core = true
		return m
	}
	html := "<html><body>Sign in</body></html>"
	backlog := func(s map[string]any) { s["msgBacklog"] = int64(math.MaxInt64) }
	return map[string]mode{
		"hang":          core(lasting(faults.Hangs(nil), "no answer within 1s")),
		"404-json":      core(lasting(faults.Refuses(http.StatusNotFound, "Topic not found"), "topic not found")),
		"redirect-away": core(lasting(faults.Redirects("http://elsewhere.example:80"), "is not an allowed Pulsar host")),
		"gzip-bomb":     core(lasting(faults.Bomb(), "sent more than 67108864 bytes")),
		"cut":           lasting(faults.Cuts(), "the connection was closed before the answer was complete"),
		"503-html":      lasting(faults.Says(http.StatusServiceUnavailable, "text/html", html), "answers 503"),
		"slow":          lasting(faults.Delays(timeout/2), ""),

		// It takes the processors, so that it runs alone.
		"240000-consumers-of-20-topics": {fault: faults.Crowds(240_000), lasts: true, topics: 20, alone: true},

		"backlog-of-2^63-1-once": core(mode{fault: faults.EditsSubscriptions(backlog)}),
		"counters-and-10^6-once": core(mode{fault: faults.Counters(faults.Plus(1e6))}),
		"counters-0":             lasting(faults.Counters(faults.Constant(0)), ""),
		"cached":                 lasting(faults.Freezes(), ""),
		"partitions-4-2":         {fault: faults.Partitions(2), lasts: true, partitions: 4},
	}
}

func TestCoreFaults(t *testing.T) { runModes(t, true) }

func TestFaults(t *testing.T) { runModes(t, false) }

// runModes runs the modes of the core, or all others.
func runModes(t *testing.T, core bool) {
	theScene.Need(t)
	for name, m := range modes() {
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

// named makes a name of a mode one of an object.
func named(mode string) string { return "f-" + strings.ToLower(strings.ReplaceAll(mode, "^", "-")) }

// TestModesWithoutATextChangeAnswers: true answers would make a Function like its twin, too.
func TestModesWithoutATextChangeAnswers(t *testing.T) {
	recorded := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "backlog", "pulsar", "testdata", "4.0.8-"+name+".json"))
		require.NoError(t, err)
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, text))
		return compact.String()
	}
	first, second := recorded("partitioned-stats-full"), recorded("partitioned-stats-slim")
	only := map[string][]string{ // texts of the faulty second answer
		"240000-consumers-of-20-topics": {`"consumerName":"crowd-0239999"`},
		"backlog-of-2^63-1-once":        {`"msgBacklog":9223372036854775807`},
		"counters-and-10^6-once":        {`"msgInCounter":1000100,`, `"msgOutCounter":1000020,`},
		"counters-0":                    {`"msgInCounter":0,`, `"msgOutCounter":0,`},
		"cached":                        {`"consumerName"`},
		"partitions-4-2":                {`"metadata":{"deleted":false,"partitions":2}`},
		"slow":                          {},
	}
	for name, m := range modes() {
		texts, known := only[name]
		require.Equal(t, m.text == "", known, name)
		if len(texts) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			answers, got := []string{first, second}, ""
			p, address := proxied(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, answers[0])
				answers = answers[1:]
			})))
			p.Falsify(m.fault, faults.Always)
			for range 2 {
				var err error
				got, err = ask(t.Context(), address+"/admin/v2/persistent/public/default/parts/partitioned-stats")
				require.NoError(t, err)
			}
			for _, text := range texts {
				require.NotContains(t, second, text)
				require.Positive(t, strings.Count(got, text), text) // got may be huge
			}
		})
	}
}
