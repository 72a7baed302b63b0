// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	heading = regexp.MustCompile(`(?s)<h[12][^>]*>(.*?)</h[12]>`)
	element = regexp.MustCompile(`<[^>]*>`)
)

// Headings are those of a page of bench/page, each on a line.
func Headings(page []byte) string {
	var texts []string
	for _, found := range heading.FindAllSubmatch(page, -1) {
		text := html.UnescapeString(element.ReplaceAllString(string(found[1]), ""))
		texts = append(texts, strings.Join(strings.Fields(text), " "))
	}
	return strings.Join(texts, "\n")
}

const (
	// afterHeader is the offset of the second chunk of a PNG file: the signature, and a chunk of 25 bytes.
	afterHeader = 8 + 25
	// mark is the type and the keyword of an uncompressed text chunk of no language.
	mark = "iTXtTitle\x00\x00\x00\x00\x00"
)

// Mark returns a PNG file with a text.
func Mark(png []byte, text string) []byte {
	data := []byte(mark + text)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)-len("iTXt"))) //nolint:gosec // headings are short
	chunk = binary.BigEndian.AppendUint32(append(chunk, data...), crc32.ChecksumIEEE(data))
	return slices.Concat(png[:afterHeader], chunk, png[afterHeader:])
}

// Text is that of a marked PNG file.
func Text(png []byte) (string, error) {
	before, after, found := bytes.Cut(png, []byte(mark))
	if !found {
		return "", errors.New("the picture has no text: draw it with make pictures")
	}
	length := int(binary.BigEndian.Uint32(before[len(before)-4:])) - len(mark) + len("iTXt")
	return string(after[:length]), nil
}

// Shows requires that the picture in a PNG file shows a page with these headings.
func Shows(t *testing.T, path string, page []byte) {
	t.Helper()
	png, err := os.ReadFile(path)
	require.NoError(t, err)
	text, err := Text(png)
	require.NoError(t, err, path)
	require.Equal(t, Headings(page), text, "%s shows an older page: run make pictures", path)
}
