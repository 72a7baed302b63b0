// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var errTest = errors.New("no")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errTest }

func TestTableAlignsColumns(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Table(&out, "title", [][]string{{"", "ours"}, {"seconds", Number(new(12.345), 2)}, {"lost", "-"}}))
	require.Equal(t, "title\n            ours\n  seconds  12.35\n     lost      -\n\n", out.String())
	require.ErrorIs(t, Table(brokenWriter{}, "title", nil), errTest)
}

func TestColumnsThatDoNotFitContinueBelow(t *testing.T) {
	rows := [][]string{{"NAME", "MET", "LATE"}, {"a-policy", "99%", "±7s"}}
	for name, test := range map[string]struct {
		width int
		want  string
	}{
		"any width":                   {0, "NAME      MET  LATE\na-policy  99%  ±7s\n"},
		"exactly its width":           {19, "NAME      MET  LATE\na-policy  99%  ±7s\n"},
		"one less":                    {18, "NAME      MET\na-policy  99%\n\nNAME      LATE\na-policy  ±7s\n"},
		"less than two columns needs": {3, "NAME      MET\na-policy  99%\n\nNAME      LATE\na-policy  ±7s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, Columns(rows, 2, test.width))
		})
	}
}

func TestWrapBreaksBetweenWords(t *testing.T) {
	require.Equal(t, "- a ±b\n  c", Wrap("a ±b  c", "- ", "  ", 6))
	require.Equal(t, "a\n  longer-than-that\n  b", Wrap("a longer-than-that b", "", "  ", 6), "a word is not cut")
	require.Empty(t, Wrap(" ", "- ", "  ", 6))
}

func TestUnknownNumbersAreNotZero(t *testing.T) {
	require.Equal(t, "-", Number(nil, 2))
	require.Equal(t, "0.00", Number(new(0.0), 2))
	require.Equal(t, "-", Whole[int](nil))
	require.Equal(t, "0", Whole(new(int64)))
}

func TestJSONCreatesTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "out.json")
	require.NoError(t, JSON(path, map[string]int{"a": 1}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "{\n  \"a\": 1\n}\n", string(text))
	require.NoError(t, JSON("", "no file"))
	require.Error(t, JSON(path, func() {}), "a function has no JSON")
	require.Error(t, JSON(filepath.Join(path, "below.json"), 1), "a file is no directory")
}

func TestQuantileIsTheNearestRank(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	tests := map[string]struct {
		sorted []int
		of     int
		q      float64
		want   int
	}{
		"the median of 1 to 100 is 50":       {hundred, 100, 0.5, 50},
		"p99 of 1 to 100 is 99":              {hundred, 100, 0.99, 99},
		"the last of 1 to 100 is 100":        {hundred, 100, 1, 100},
		"p99 of ten is the last":             {hundred[:10], 10, 0.99, 10},
		"the median of three is the middle":  {hundred[:3], 3, 0.5, 2},
		"every quantile of one value is it":  {hundred[6:7], 1, 0.5, 7},
		"a quantile near zero is the first":  {hundred, 100, 1e-9, 1},
		"missing values are the largest":     {hundred[:3], 4, 0.75, 3},
		"a quantile of missing is unknown":   {hundred[:3], 4, 0.76, 0},
		"a quantile of no values is unknown": {nil, 0, 0.5, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, known := Quantile(tt.sorted, tt.of, tt.q)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want != 0, known)
		})
	}
}

func TestQuantileAgreesWithCounting(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		values := make([]int, 1+random.IntN(30))
		for i := range values {
			values[i] = random.IntN(20)
		}
		slices.Sort(values)
		percent := 1 + random.IntN(100)
		got, known := Quantile(values, len(values), float64(percent)/100)
		require.True(t, known)
		atMost, below := 0, 0
		for _, v := range values {
			if v <= got {
				atMost++
			}
			if v < got {
				below++
			}
		}
		require.GreaterOrEqual(t, atMost*100, percent*len(values), "p%d of %v", percent, values)
		require.Less(t, below*100, percent*len(values), "p%d of %v", percent, values)
	}
}
