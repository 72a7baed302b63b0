// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package jdk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// install writes a directory that looks like a JDK of that version, or like a JRE.
func install(t *testing.T, version string, commands ...string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o750))
	release := "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"" + version + "\"\nOS_ARCH=\"x86_64\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "release"), []byte(release), 0o600))
	for _, command := range commands {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", command), nil, 0o700))
	}
	return dir
}

func TestNewest(t *testing.T) {
	all := []string{"java", "javac", "jar"}
	for name, test := range map[string]struct {
		versions []string
		jre      string
		want     string
		err      string
	}{
		"takes the newest by number, not by letter": {versions: []string{"17.0.9", "17.0.15", "17.0.2"}, want: "17.0.15"},
		"prefers a later major version":             {versions: []string{"17.0.15", "25"}, want: "25"},
		"leaves a JRE without a compiler aside":     {versions: []string{"17.0.1"}, jre: "25.0.1", want: "17.0.1"},
		"names the old ones when none is new enough": {
			versions: []string{"11.0.2"},
			err:      "(11.0.2): install a JDK of version 17",
		},
		"reads the old numbering as 1":                  {versions: []string{"1.8.0_402"}, err: "(1.8.0_402)"},
		"says what to install when there is none":       {err: "apt-get install openjdk-17-jdk-headless"},
		"says what to install when there is a JRE only": {jre: "25.0.1", err: "no JDK found: install"},
	} {
		t.Run(name, func(t *testing.T) {
			candidates := []string{"", "/nowhere"}
			for _, version := range test.versions {
				candidates = append(candidates, install(t, version, all...))
			}
			if test.jre != "" {
				candidates = append(candidates, install(t, test.jre, "java"))
			}
			got, err := newest(candidates)
			if test.err != "" {
				require.ErrorIs(t, err, ErrNoJDK)
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got.Version)
		})
	}
}

func TestFindHonoursJavaHome(t *testing.T) {
	home := install(t, "999.0.1", "java", "javac", "jar")
	t.Setenv("JAVA_HOME", home)
	got, err := Find()
	require.NoError(t, err)
	require.Equal(t, JDK{Home: home, Version: "999.0.1"}, got)
	require.Equal(t, 999, got.Major())
}

func TestMavenMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Maven()
	require.ErrorIs(t, err, ErrNoMaven)
	require.ErrorContains(t, err, "install Maven")
}
