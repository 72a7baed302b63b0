// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"embed"
	"io/fs"
)

//go:embed java/src python
var sources embed.FS

// Sources has java/src/main/java with the Java classes, and python with the module work.
func Sources() fs.FS { return sources }
