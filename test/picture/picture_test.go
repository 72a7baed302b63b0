// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"image"
	"image/png"
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
