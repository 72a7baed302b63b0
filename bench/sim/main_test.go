// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	pictures "github.com/pulsar-autoscaler/pulsar-autoscaler/test/picture"
)

// decoded has the fields that external readers use.
type decoded struct {
	Seed        uint64                               `json:"seed"`
	Controllers map[string]map[string]any            `json:"controllers"`
	Sets        map[string]map[string]map[string]any `json:"sets"`
}

// sim runs the command and returns its output, the JSON, and the decoded JSON.
func sim(t *testing.T, args ...string) (printed string, text []byte, numbers decoded) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sim.json")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), append(args, "-out="+path), &out, io.Discard))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &numbers))
	return out.String(), text, numbers
}

func keys(of map[string]any) []string {
	var all []string
	for key := range of {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

func TestEveryControllerHasTheKeysThatReadersRelyOn(t *testing.T) {
	printed, _, numbers := sim(t, "-seed=7", "-seeds=1", "-held-out=2", "-controller=simple|capacity",
		"-scenario=^(step|ramp|held-out-.*)$")
	require.EqualValues(t, 7, numbers.Seed)
	require.Len(t, numbers.Controllers, 3)
	want := []string{"actions", "avoidable_late_pp", "cost_over_oracle", "flaps", "late_pct", "settle_seconds"}
	ofScenario := slices.Sorted(slices.Values(append(slices.Clone(want), "family")))
	for name, c := range numbers.Controllers {
		require.Contains(t, printed, name)
		scenarios, ok := c["scenarios"].(map[string]any)
		require.True(t, ok)
		require.Equal(t, []string{"held-out-000", "held-out-001", "ramp", "step"}, keys(scenarios), name)
		for _, one := range scenarios {
			require.Equal(t, ofScenario, keys(one.(map[string]any)))
		}
		require.NotNil(t, scenarios["step"].(map[string]any)["late_pct"])
		require.Nil(t, scenarios["ramp"].(map[string]any)["settle_seconds"], "nothing settles where nothing steps")
		require.Equal(t, numbers.Sets["held-out"][name]["cost_over_oracle"], c["cost_over_oracle"])
		delete(c, "scenarios")
		require.Equal(t, want, keys(c))
	}
	oracle := numbers.Sets["suite"]["oracle"]
	require.InDelta(t, 1, oracle["cost_over_oracle"], 1e-9)
	require.InDelta(t, 0, oracle["avoidable_late_pp"], 1e-9)
}

func TestEqualSeedsGiveEqualBytes(t *testing.T) {
	args := []string{
		"-seed=3", "-seeds=2", "-held-out=3", "-scenario=held-out|poison",
		"-controller=keda-default10|simple",
	}
	printed, text, _ := sim(t, args...)
	again, same, _ := sim(t, args...)
	require.Equal(t, printed, again)
	require.Equal(t, string(text), string(same))
	_, other, _ := sim(t, append(args, "-seed=4")...)
	require.NotEqual(t, string(text), string(other))
}

func TestLeavingPartsOutAddsControllers(t *testing.T) {
	printed, _, numbers := sim(t, "-seeds=1", "-held-out=2", "-scenario=^(step|held-out-.*)$", "-controller=^$",
		"-ablate=price,lazy-up+headroom")
	require.Contains(t, printed, "capacity without a part")
	for _, s := range numbers.Sets {
		require.Len(t, s, 4)
		for _, name := range []string{"oracle", "capacity", "capacity without price", "capacity without lazy-up+headroom"} {
			require.Contains(t, s, name)
		}
	}
}

func TestPartsAreNamed(t *testing.T) {
	all, err := parseVariants("all")
	require.NoError(t, err)
	require.Len(t, all, len(partNames()))
	none, err := parseVariants("")
	require.NoError(t, err)
	require.Empty(t, none)
	for text, want := range map[string]string{
		"price,haste": `"haste" is no part`, "price,": `"" is no part`, "price,price": "twice",
		"price+lazy-up,price+lazy-up": "twice",
	} {
		_, err := parseVariants(text)
		require.ErrorContains(t, err, want)
	}
}

func TestThereIsAPageOfEachScenario(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plots")
	args := []string{
		"-seeds=1", "-held-out=1", "-scenario=^(step|held-out-.*)$", "-controller=ds2|simple", "-plots=" + dir,
	}
	require.NoError(t, run(t.Context(), args, io.Discard, io.Discard))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		require.Contains(t, string(text), " s objective met for ")
		require.Contains(t, string(text), `{"name":"simple","seconds":[0,1,`)
	}
	require.Equal(t, []string{"held-out-000.html", "step.html"}, names)
}

func TestThePicturesShowThePages(t *testing.T) {
	for name, file := range map[string]string{"algorithm.md": "algorithm.png", "forecast.md": "forecast.png"} {
		t.Run(name, func(t *testing.T) {
			docs := filepath.Join("..", "..", "docs")
			text, err := os.ReadFile(filepath.Join(docs, name))
			require.NoError(t, err)
			_, command, found := strings.Cut(strings.Join(strings.Fields(string(text)), " "), "go run ./bench/sim ")
			require.True(t, found)
			command, _, found = strings.Cut(command, " -plots ")
			require.True(t, found)
			dir := t.TempDir()
			args := append(strings.Fields(strings.ReplaceAll(command, "'", "")), "-plots", dir)
			require.NoError(t, run(t.Context(), args, io.Discard, io.Discard))
			pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
			require.NoError(t, err)
			require.Len(t, pages, 1)
			page, err := os.ReadFile(pages[0])
			require.NoError(t, err)
			pictures.Shows(t, filepath.Join(docs, file), page)
		})
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for flag, want := range map[string]string{
		"-seeds=0": "-seeds is 0", "-controller=(": "-controller", "-scenario=(": "-scenario", "-fast": "-fast",
		"fast":          `"fast" is not a flag`,
		"-ablate=haste": `-ablate: "haste" is no part`, "-plot=(": "-plot", "-scenario=^$": "all are run without it",
	} {
		require.ErrorContains(t, run(t.Context(), []string{flag}, io.Discard, io.Discard), want)
	}
}

func TestHelpNamesTheParts(t *testing.T) {
	var help bytes.Buffer
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, &help), flag.ErrHelp)
	for _, name := range partNames() {
		require.Contains(t, help.String(), name)
	}
}
