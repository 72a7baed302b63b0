// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"html"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMarkedPictureHasItsText(t *testing.T) {
	var drawn bytes.Buffer
	require.NoError(t, png.Encode(&drawn, image.NewGray(image.Rect(0, 0, 3, 2))))
	_, err := Text(drawn.Bytes())
	require.ErrorContains(t, err, "make pictures")
	const text = "30 s objective met for 99.7 % of messages\nLoad"
	marked := Mark(drawn.Bytes(), text)
	got, err := Text(marked)
	require.NoError(t, err)
	require.Equal(t, text, got)
	decoded, err := png.Decode(bytes.NewReader(marked))
	require.NoError(t, err, "it is a PNG file")
	require.Equal(t, image.Rect(0, 0, 3, 2), decoded.Bounds())
}

func TestHeadingsAreTextsOfTheirOwn(t *testing.T) {
	require.Equal(t, "Load & cost\nReplicas messages/s", Headings([]byte(`<h1>Load &amp; cost</h1><p>no</p>`+
		`<h2 id="a">Replicas <span class="unit">messages/s</span></h2>`)))
}

func TestMakePicturesDrawsEveryPictureOfTheDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	pictures := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if slices.Contains([]string{".png", ".svg", ".jpg", ".gif"}, filepath.Ext(path)) {
			pictures++
			path, err := filepath.Rel(root, path)
			require.NoError(t, err)
			require.Contains(t, string(makefile), " "+filepath.ToSlash(path)+"\n")
		}
		return err
	}))
	require.NotZero(t, pictures)
}

func TestTheArchitectureShowsItsSource(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	source, err := os.ReadFile(filepath.Join(docs, "architecture.dot"))
	require.NoError(t, err)
	drawn, err := os.ReadFile(filepath.Join(docs, "architecture.svg"))
	require.NoError(t, err)
	var labels, texts []string
	for _, label := range regexp.MustCompile(`label="([^"]+)"`).FindAllSubmatch(source, -1) {
		labels = append(labels, strings.Split(string(label[1]), `\n`)...)
	}
	for _, text := range regexp.MustCompile(`<text [^>]*>([^<]*)</text>`).FindAllSubmatch(drawn, -1) {
		texts = append(texts, html.UnescapeString(string(text[1])))
	}
	require.NotEmpty(t, labels)
	require.ElementsMatch(t, labels, texts, "run make pictures")
}
