// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/guide"
)

// recorder replaces a program: it records its directory and its arguments. As make push it writes dist/images.yaml.
const recorder = `#!/bin/sh
call="$RECORDED/${0##*/}.$$"
printf '%s\0' "$PWD" "$@" > "$call"
case " $* " in *" -f - "*) cat > "$call.stdin" ;; esac
case "${0##*/} $*" in "make push REGISTRY="*)
  printf 'image: {registry: "%s", digests: {adapter: sha256:%064d, scaler: sha256:%064d}}' \
    "${2#REGISTRY=}" 1 2 > dist/images.yaml
esac
`

// imagesNamed stands for what the chart says of images in the archive of a release.
const imagesNamed = "--set=image.registry=registry.example.org/pulsar-autoscaler"

// recorded are the programs that guides call.
func recorded() []string {
	return []string{"go", "helm", "kubectl", "make", "pulsar", "pulsar-admin", "sha256sum", "skopeo", "tar"}
}

var (
	yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	aChart    = regexp.MustCompile(`^(deploy/chart|pulsar-autoscaler-[0-9.]+\.tgz)$`)
)

// call is a call of a program in a directory.
type call struct {
	dir   string
	args  []string
	stdin []byte
}

// TestTheGuidesAreTaken runs the commands of each page with recorders in place of the programs. The helm calls render
// with flags that the programs know, and a real API server accepts the objects of kubectl apply.
func TestTheGuidesAreTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("needs helm and a real control plane")
	}
	people := administrator(t)
	for _, name := range []string{namespace, "pulsar", "shop", "media"} {
		require.NoError(t, client.IgnoreAlreadyExists(people.Create(t.Context(), namespaceOf(name))))
	}
	for _, page := range append(guides(t), filepath.Join("..", "..", "docs", "upgrade.md")) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			calls := follow(t, string(text))
			require.NotEmpty(t, calls["helm"])
			for _, flags := range append(releases(t, calls["helm"]), valuesIn(t, string(text))...) {
				requireFlagsTaken(t, renderWith(t, flags...))
			}
			var objects []*unstructured.Unstructured
			for _, one := range calls["kubectl"] {
				objects = append(objects, decode(t, one.stdin)...)
			}
			requireTaken(t, people, objects)
			requirePoliciesApplied(t, calls["kubectl"], ofKind(objects, "AutoscalingPolicy"))
		})
	}
}

// follow runs the commands of a page and returns the calls of each program.
func follow(t *testing.T, page string) map[string][]call {
	t.Helper()
	bin, record, work := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range recorded() {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(recorder), 0o700))
	}
	cat, err := exec.LookPath("cat")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(cat, filepath.Join(bin, "cat")))
	require.NoError(t, os.Mkdir(filepath.Join(work, "dist"), 0o700))

	var script strings.Builder
	for _, section := range guide.Sections(page) {
		script.WriteString(section.Script)
	}
	script.WriteString("wait\n")
	command := exec.CommandContext(t.Context(), "/bin/sh", "-e", "-c", script.String())
	command.Dir = work
	command.Env = []string{"PATH=" + bin, "RECORDED=" + record}
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	return callsIn(t, record)
}

func callsIn(t *testing.T, record string) map[string][]call {
	t.Helper()
	calls := map[string][]call{}
	for _, name := range recorded() {
		files, err := filepath.Glob(filepath.Join(record, name+".*[0-9]"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			words := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
			stdin, err := os.ReadFile(file + ".stdin")
			if !os.IsNotExist(err) {
				require.NoError(t, err)
			}
			calls[name] = append(calls[name], call{dir: words[0], args: words[1:], stdin: stdin})
		}
	}
	return calls
}

// releases returns the flags of calls that render the chart. All calls are about one release.
func releases(t *testing.T, calls []call) (all [][]string) {
	t.Helper()
	for _, one := range calls {
		require.Contains(t, strings.Join(one.args, " "), "--namespace "+namespace)
		require.Contains(t, one.args, "pulsar-autoscaler")
		if !slices.Contains([]string{"install", "upgrade", "template"}, one.args[0]) {
			continue
		}
		require.Regexp(t, aChart, one.args[2])
		var flags []string
		if one.args[2] != "deploy/chart" {
			flags = append(flags, imagesNamed)
		}
		for i, flag := range one.args[3:] {
			switch {
			case flag == "--create-namespace": // helm template has no such flag
			case one.args[2+i] == "--values":
				flags = append(flags, filepath.Join(one.dir, flag))
			default:
				flags = append(flags, flag)
			}
		}
		all = append(all, flags)
	}
	require.NotEmpty(t, all)
	return all
}

// valuesIn returns the flags for each block of values.
func valuesIn(t *testing.T, page string) (all [][]string) {
	t.Helper()
	for _, block := range yamlBlock.FindAllStringSubmatch(page, -1) {
		file := filepath.Join(t.TempDir(), "values.yaml")
		require.NoError(t, os.WriteFile(file, []byte(block[1]), 0o600))
		all = append(all, []string{imagesNamed, "--values=" + file})
	}
	return all
}

// TestEachGuideSaysWhatItGivesAndHowToRemoveIt: the index of the guides promises both.
func TestEachGuideSaysWhatItGivesAndHowToRemoveIt(t *testing.T) {
	index, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "README.md"))
	require.NoError(t, err)
	for _, page := range guides(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Regexp(t, `^# .*\n\nAt the end `, string(text), page)
		require.Contains(t, string(text), "\n## Remove it\n", page)
		require.Contains(t, string(index), "]("+filepath.Base(page)+")")
	}
}

func guides(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "guides", "*.md"))
	require.NoError(t, err)
	pages = slices.DeleteFunc(pages, func(page string) bool { return filepath.Base(page) == "README.md" })
	require.NotEmpty(t, pages)
	return pages
}

// requirePoliciesApplied fails if a command names a policy that the page does not apply.
func requirePoliciesApplied(t *testing.T, calls []call, policies []*unstructured.Unstructured) {
	t.Helper()
	applied := map[string]bool{}
	for _, policy := range policies {
		applied[policy.GetNamespace()+" "+policy.GetName()] = true
	}
	policyOf := regexp.MustCompile(`-n (\S+) .*\bpap[ /]([a-z]\S*)`)
	for _, one := range calls {
		words := strings.Join(one.args, " ")
		if named := policyOf.FindStringSubmatch(words); named != nil {
			require.Contains(t, applied, named[1]+" "+named[2], words)
		}
	}
}

// requireTaken has the API server validate each object strictly.
func requireTaken(t *testing.T, people client.Client, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, apply(t, people, object), "%s %s", object.GetKind(), object.GetName())
	}
}
