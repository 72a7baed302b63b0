// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAScriptIsSplitAsAShellDoes(t *testing.T) {
	tests := map[string]struct {
		script string
		want   []string
		fails  bool
	}{
		"blanks part words":             {script: " a\tb\n c  ", want: []string{"a", "b", "c"}},
		"single quotes keep everything": {script: `'a "b" \ $c' d`, want: []string{`a "b" \ $c`, "d"}},
		"double quotes keep blanks and honour backslashes": {
			script: `"a 'b' \" \\ \$ \n" c`, want: []string{`a 'b' " \ $ \n`, "c"},
		},
		"quotes within a word":              {script: `a'b c'"d e"\ f`, want: []string{"ab cd e f"}},
		"an empty word is a word":           {script: `a '' ""`, want: []string{"a", "", ""}},
		"operators and expansions stay":     {script: `x=${P##*-} && y $x`, want: []string{"x=${P##*-}", "&&", "y", "$x"}},
		"a line with a continuation":        {script: "a\\\nb", want: []string{"ab"}},
		"the usual way to quote a quote":    {script: `'it'\''s'`, want: []string{"it's"}},
		"an open single quote is a mistake": {script: `a 'b`, fails: true},
		"an open double quote is a mistake": {script: `a "b\"`, fails: true},
		"a blank script has no words":       {script: " "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			words, err := splitWords(test.script)
			require.Equal(t, test.fails, err != nil, err)
			require.Equal(t, test.want, words)
		})
	}
}
