// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
)

// packaged has what a release sets of deploy/artifacthub/artifacthub-pkg.yml.
const packaged = `# a package
version: 0.0.0
createdAt: "1970-01-01T00:00:00Z"
appVersion: VERSION
prerelease: false
  image: example.invalid/pulsar-autoscaler/scaler:VERSION
  url: https://example.com/hello/blob/main/docs/keda.md
    pulsar-autoscaler-VERSION.tgz \
`

// deployed is a Deployment of the program.
const deployed = `kind: Deployment
metadata: {name: hello}
spec: {template: {spec: {serviceAccountName: hello, containers: [{name: hello}]}}}
`

// checkout is a git repository with one program, committed and tagged v1.2.3. The time of the commit is fixed.
func checkout(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program for two platforms")
	}
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example.com/hello\n\ngo 1.26.0\n",
		"cmd/hello/main.go": "package main\n\nimport _ \"embed\"\n\n//go:embed js/a.js\nvar js string\n\nfunc main() { println(js) }\n",
		"cmd/hello/js/a.js": "hello\n",
		"cmd/hello/js/package-lock.json": `{"packages": {"": {"license": "Apache-2.0"}, "node_modules/@x/a": {"version": ` +
			`"1.2.0", "integrity": "sha512-AAEC", "license": "MIT"}, "node_modules/b": {"dev": true}}}`,
		"cmd/internal/x/x.go": "package x\n",
		"LICENSE":             "a licence\n",
		"CHANGELOG.md":        "# Changelog\n\n## Unreleased\n\n## v1.2.3 (2026-11-23)\n\n### Added\n\n- Says\n  [hello](docs/hello.md#a).\n",
		"deploy/crd/a.yaml":   "---\nkind: CustomResourceDefinition\n",
		"deploy/crd/b.yaml":   "kind: CustomResourceDefinition\n",

		"deploy/chart/Chart.yaml": "name: pulsar-autoscaler\nversion: 0.0.0\nappVersion: VERSION\n" +
			"annotations:\n  artifacthub.io/changes: \"\"\n  artifacthub.io/images: \"\"\n",
		"deploy/chart/values.yaml":                 "image:\n  registry: example.invalid/pulsar-autoscaler\n  digests:\n    hello: \"\"\n",
		"deploy/chart/templates/hello.yaml":        "kind: Deployment\n",
		"deploy/chart/ci/values.yaml":              "a: b\n",
		"deploy/chart/files/monitoring/rules.yaml": "runbook_url: https://example.com/hello/blob/main/docs/runbook.md#a\n",
		"deploy/artifacthub/artifacthub-pkg.yml":   packaged,
		"deploy/kustomization.yaml":                "resources: [hello.yaml]\n",
		"deploy/hello.yaml":                        deployed,
		"deploy/olm/annotations.yaml":              "annotations: {}\n",
		"deploy/olm/clusterserviceversion.yaml":    "kind: ClusterServiceVersion\nmetadata: {annotations: {}}\nspec: {}\n",
		"deploy/olm/icon.svg":                      "<svg/>\n",
		"examples/function.yaml":                   "kind: A\n",
		"examples/autoscalingpolicyset.yaml":       "kind: B\n",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "deploy", "chart", "files"), 0o700))
	require.NoError(t, os.Symlink("../../crd/a.yaml", filepath.Join(root, "deploy", "chart", "files", "a.yaml")))
	git(t, root, "init", "-q", "-b", "main")
	git(t, root, "add", "-A")
	git(t, root, "commit", "-q", "-m", "Say hello")
	git(t, root, "tag", "v1.2.3")
	return root
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-11-23T07:00:00Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-11-23T07:00:00Z")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
}

func TestReleaseIsTheSameFromTheSameCommit(t *testing.T) {
	root, dists := checkout(t), []string{t.TempDir(), t.TempDir()}
	clone := filepath.Join(t.TempDir(), "elsewhere")
	git(t, root, "clone", "-q", root, clone)
	var digests [2]bytes.Buffer
	for i, from := range []string{root, clone} {
		r := release{
			root: from, dist: dists[i], version: "v1.2.3", registry: "x.org/a", out: &digests[i],
		}
		require.NoError(t, r.run(context.WithoutCancel(t.Context())))
	}
	require.Equal(t, read(t, dists[0], "SHA256SUMS"), read(t, dists[1], "SHA256SUMS"))
	require.Regexp(t, "^hello v1.2.3 sha256:[0-9a-f]{64}\n$", digests[0].String())
	require.Equal(t, digests[0].String(), digests[1].String())

	t.Run("checksums are those of the files", func(t *testing.T) { checkSums(t, dists[0]) })
	t.Run("the notes are the version's", func(t *testing.T) {
		require.Equal(t, "### Added\n\n- Says\n  [hello](https://example.com/hello/blob/v1.2.3/docs/hello.md#a).\n",
			read(t, dists[0], "release-notes.md"))
	})
	t.Run("all CRDs are in one file", func(t *testing.T) {
		require.Equal(t, 2, strings.Count(read(t, dists[0], "crds.yaml"), "---\nkind: CustomResourceDefinition\n"))
	})
	t.Run("the image runs as its user with what programs need", func(t *testing.T) { checkImage(t, dists[0]) })
	t.Run("the chart has version and digest", func(t *testing.T) { checkChart(t, dists[0], digests[0].String()) })
	t.Run("Artifact Hub gets version, time and image", func(t *testing.T) {
		require.Equal(t, `# a package
version: 1.2.3
createdAt: "2026-11-23T07:00:00Z"
appVersion: v1.2.3
prerelease: false
  image: x.org/a/scaler:v1.2.3
  url: https://example.com/hello/blob/v1.2.3/docs/keda.md
    pulsar-autoscaler-1.2.3.tgz \
`, read(t, dists[0], "artifacthub-pkg.yml"))
	})
	t.Run("the bill of materials names the program", func(t *testing.T) { checkMaterials(t, dists[0]) })
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(data)
}

func checkSums(t *testing.T, dist string) {
	t.Helper()
	var names []string
	for line := range strings.Lines(read(t, dist, "SHA256SUMS")) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok)
		got := sha256.Sum256([]byte(read(t, dist, name)))
		require.Equal(t, sum, hex.EncodeToString(got[:]), name)
		names = append(names, name)
	}
	require.Equal(t, []string{
		"artifacthub-pkg.yml", "crds.yaml", "hello-image.tar", "hello-linux-amd64", "hello-linux-amd64.cdx.json",
		"hello-linux-arm64", "hello-linux-arm64.cdx.json", "pulsar-autoscaler-1.2.3.tgz",
		"pulsar-autoscaler-olm-bundle-1.2.3.tar.gz", "release-notes.md",
	}, names)
}

func checkChart(t *testing.T, dist, printed string) {
	t.Helper()
	file, err := os.Open(filepath.Join(dist, "pulsar-autoscaler-1.2.3.tgz"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	archive, err := gzip.NewReader(file)
	require.NoError(t, err)
	texts := map[string]string{}
	for name, data := range unpack(t, archive) {
		if !strings.HasSuffix(name, "/") {
			texts[name] = string(data)
		}
	}
	digest := strings.Fields(printed)[2]
	require.Equal(t, map[string]string{
		"pulsar-autoscaler/Chart.yaml": "name: pulsar-autoscaler\nversion: 1.2.3\nappVersion: v1.2.3\n" +
			"annotations:\n  artifacthub.io/changes: |\n    - description: Says hello.\n      kind: added\n" +
			"  artifacthub.io/images: |\n    - image: x.org/a/hello@" + digest + "\n      name: hello\n",
		"pulsar-autoscaler/values.yaml":          "image:\n  registry: x.org/a\n  digests:\n    hello: " + digest + "\n",
		"pulsar-autoscaler/templates/hello.yaml": "kind: Deployment\n",
		"pulsar-autoscaler/files/a.yaml":         "---\nkind: CustomResourceDefinition\n",
		"pulsar-autoscaler/files/monitoring/rules.yaml": "" +
			"runbook_url: https://example.com/hello/blob/v1.2.3/docs/runbook.md#a\n",
	}, texts)
}

func checkImage(t *testing.T, dist string) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(filepath.Join(dist, "images", "hello"))
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	outer, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, outer.Manifests, 1)
	require.Equal(t, "v1.2.3", outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	require.NoError(t, err)
	manifest, err := inner.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 2)
	for i, arch := range []string{"amd64", "arm64"} {
		require.Equal(t, "linux/"+arch, manifest.Manifests[i].Platform.String())
		image, err := inner.Image(manifest.Manifests[i].Digest)
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, arch, config.Architecture)
		require.Equal(t, "65532:65532", config.Config.User)
		require.Equal(t, []string{"/hello"}, config.Config.Entrypoint)
		require.Equal(t, "v1.2.3", config.Config.Labels["org.opencontainers.image.version"])
		require.Equal(t, "https://example.com/hello", config.Config.Labels["org.opencontainers.image.source"])
		require.Equal(t, "2026-11-23T07:00:00Z", config.Config.Labels["org.opencontainers.image.created"])
		require.Len(t, config.Config.Labels["org.opencontainers.image.revision"], 40)

		files := unpack(t, mutate.Extract(image))
		require.Equal(t, read(t, dist, "hello-linux-"+arch), string(files["hello"]))
		require.Equal(t, "a licence\n", string(files["licenses/LICENSE"]))
		require.Contains(t, files, "etc/ssl/certs/ca-certificates.crt")
		require.Contains(t, files, "usr/share/zoneinfo/Europe/Berlin")
	}
}

func checkMaterials(t *testing.T, dist string) {
	t.Helper()
	var bom struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Timestamp string
			Component struct {
				Name, Version, PURL string
				Hashes              []struct{ Content string }
			}
		}
		Components []struct {
			PURL     string
			Licenses []struct{ License struct{ ID string } }
			Hashes   []struct{ Alg, Content string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, dist, "hello-linux-arm64.cdx.json")), &bom))
	require.Equal(t, "CycloneDX 1.6", bom.BOMFormat+" "+bom.SpecVersion)
	component := bom.Metadata.Component
	require.Equal(t, "hello v1.2.3 pkg:golang/example.com/hello@v1.2.3",
		component.Name+" "+component.Version+" "+component.PURL)
	require.Equal(t, "2026-11-23T07:00:00Z", bom.Metadata.Timestamp)
	sum := sha256.Sum256([]byte(read(t, dist, "hello-linux-arm64")))
	require.Equal(t, hex.EncodeToString(sum[:]), component.Hashes[0].Content)
	require.Equal(t, "pkg:golang/stdlib@"+strings.TrimPrefix(toolchain, "go"), bom.Components[0].PURL)
	script := bom.Components[len(bom.Components)-1]
	require.Equal(t, "pkg:npm/%40x/a@1.2.0 MIT", script.PURL+" "+script.Licenses[0].License.ID)
	require.Equal(t, "SHA-512 000102", script.Hashes[0].Alg+" "+script.Hashes[0].Content)
}

func TestReleaseNeedsItsCommit(t *testing.T) {
	tests := map[string]struct {
		change  func(t *testing.T, root string)
		version string
		want    string
	}{
		"the version is one of a Go module": {func(*testing.T, string) {}, "1.2.3", "must look like v1.2.3"},
		"the commit has the tag":            {func(*testing.T, string) {}, "v1.2.4-rc.1", "CHANGELOG.md has no section"},
		"another tag": {func(t *testing.T, root string) {
			git(t, root, "tag", "-d", "v1.2.3")
			git(t, root, "tag", "v1.2.2")
		}, "v1.2.3", "building for linux-amd64: hello says its version is v1.2.2 and not v1.2.3: commit all changes, and tag the commit (git tag v1.2.3)"},
		"a change that no commit has": {func(t *testing.T, root string) {
			require.NoError(t, os.WriteFile(filepath.Join(root, "LICENSE"), []byte("another"), 0o600))
		}, "v1.2.3", "hello says its version is v1.2.3+dirty and not v1.2.3: commit all changes"},
		"no git checkout": {func(t *testing.T, root string) {
			require.NoError(t, os.RemoveAll(filepath.Join(root, ".git")))
		}, "v1.2.3", "hello names no commit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root, dist := checkout(t), t.TempDir()
			test.change(t, root)
			kept := filepath.Join(dist, "kept")
			require.NoError(t, os.WriteFile(kept, nil, 0o600))
			r := release{root: root, dist: dist, version: test.version, out: io.Discard}
			require.ErrorContains(t, r.run(t.Context()), test.want)
			require.FileExists(t, kept, "the last release stays until there is another")
		})
	}
}

func TestToolchainIsTheOneThatBuilds(t *testing.T) {
	r := release{root: "."}
	version, err := r.goTool(t.Context(), serverPlatforms()[0], "env", "GOVERSION")
	require.NoError(t, err)
	require.Equal(t, toolchain, version)
}

func TestOneImageIsBuiltAlone(t *testing.T) {
	root, dist := checkout(t), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "cmd", "absent"), 0o700)) // it cannot be built
	r := release{root: root, dist: dist, only: "linux-amd64", program: "hello", out: io.Discard}
	require.NoError(t, r.run(t.Context()))
	images, err := os.ReadDir(filepath.Join(dist, "images"))
	require.NoError(t, err)
	require.Len(t, images, 1)
	require.Equal(t, "hello", images[0].Name())

	r.program = "helo"
	require.ErrorContains(t, r.run(t.Context()), `there is no "helo": use one of absent, hello`)
	r.version = "v1.2.3"
	require.ErrorContains(t, r.run(t.Context()), "leave -platform and -program out")
}
