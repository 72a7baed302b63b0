// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
)

// tinyModule has one program, which prints the version stamped into it.
func tinyModule(t *testing.T, program string) (root string, tiny module) {
	t.Helper()
	t.Setenv(cache.Variable, t.TempDir())
	root = t.TempDir()
	files := map[string]string{
		"go.mod":  "module example.org/tiny\n\ngo 1.26.0\n\nrequire example.org/pinned v1.2.3 // indirect\n",
		"go.sum":  "",
		"main.go": program,
	}
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	return root, module{
		name: "tiny", pins: "example.org/pinned", packages: []string{"example.org/tiny"}, about: "in no time",
		linker: func(version string) string { return " -X main.version=" + version },
	}
}

const tinyProgram = "package main\n\nvar version string\n\nfunc main() { print(version) }\n"

func TestBinariesAreBuiltStampedAndKept(t *testing.T) {
	root, tiny := tinyModule(t, tinyProgram)
	var progress strings.Builder
	dir, version, err := tiny.binaries(t.Context(), root, &progress)
	require.NoError(t, err)
	require.Equal(t, "v1.2.3", version)
	require.Regexp(t, `^tiny-v1\.2\.3-[0-9a-f]{12}$`, filepath.Base(dir))
	require.Contains(t, progress.String(), "building tiny v1.2.3: in no time\n")
	output, err := exec.CommandContext(t.Context(), filepath.Join(dir, "tiny")).CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "v1.2.3", string(output))

	t.Setenv("PATH", "")
	progress.Reset()
	again, _, err := tiny.binaries(t.Context(), root, &progress)
	require.NoError(t, err, "a cached build needs no go command")
	require.Equal(t, dir, again)
	require.Empty(t, progress.String())

	require.NoError(t, os.WriteFile(filepath.Join(root, "go.sum"), []byte("\n"), 0o600))
	_, _, err = tiny.binaries(t.Context(), root, nil)
	require.ErrorContains(t, err, "building tiny v1.2.3: finding the go command", "other dependencies need another build")
	require.ErrorContains(t, err, "install Go 1.26 or newer from https://go.dev/dl")
}

func TestBinariesAreBuiltWithTheTags(t *testing.T) {
	root, tiny := tinyModule(t, "//go:build needed\n\n"+tinyProgram)
	tiny.tags = "needed"
	_, _, err := tiny.binaries(t.Context(), root, nil)
	require.NoError(t, err)
}

func TestBinariesHaveOtherNames(t *testing.T) {
	root, tiny := tinyModule(t, "package main\n\nimport \"os\"\n\nfunc main() { print(os.Args[0]) }\n")
	tiny.output, tiny.links, tiny.linker = "both", []string{"one", "two"}, func(string) string { return "" }
	dir, _, err := tiny.binaries(t.Context(), root, nil)
	require.NoError(t, err)
	output, err := exec.CommandContext(t.Context(), filepath.Join(dir, "two")).CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "two"), string(output))
}

func TestABuildThatFailsShowsTheCompilersWords(t *testing.T) {
	root, tiny := tinyModule(t, strings.Replace(tinyProgram, "print(version)", "print(missing)", 1))
	_, _, err := tiny.binaries(t.Context(), root, nil)
	require.ErrorContains(t, err, "undefined: missing")
}

func TestTheVersionMustBePinned(t *testing.T) {
	root, tiny := tinyModule(t, tinyProgram)
	tiny.pins = "example.org/other"
	_, _, err := tiny.binaries(t.Context(), root, nil)
	require.ErrorContains(t, err, "no version of example.org/other is required")
}

func TestStagingModulesAreOfTheSameRelease(t *testing.T) {
	root, err := buildDir()
	require.NoError(t, err)
	kubernetes := controlPlane()
	version, _, err := kubernetes.pinned(root)
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	replaced := regexp.MustCompile(`(?m)=> k8s\.io/\S+ (\S+)$`).FindAllSubmatch(mod, -1)
	require.Greater(t, len(replaced), 30, "Kubernetes has more than 30 staging modules")
	for _, match := range replaced {
		require.Equal(t, strings.Replace(version, "v1.", "v0.", 1), string(match[1]), "%s", match[0])
	}
}

func TestKubernetesIsStampedAsAReleaseBuildWouldBe(t *testing.T) {
	flags := stampKubernetes("v1.36.3")
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, value := range []string{"gitVersion=v1.36.3", "gitMajor=1", "gitMinor=36"} {
			require.Contains(t, flags, " -X "+pkg+"."+value+" ")
		}
	}
}
