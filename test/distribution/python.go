// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// FetchPythonInstance returns the directory of Pulsar's Python function instance, python_instance_main.py and the
// modules it imports. It is that of the default Version, the only one with a server tarball on Central, and works with
// brokers of all Versions. It comes from the tarball of Fetch. Errors wrap jdk.ErrNoMaven or quote Maven's last lines.
func FetchPythonInstance(ctx context.Context, progress io.Writer) (dir string, err error) {
	dir, err = fill(ctx, "pulsar-"+Version+"-python", progress,
		"unpacking the Python function instance of Pulsar "+Version,
		"-Dmdep.unpack.includes=**/python-instance/*.py")
	if err != nil {
		return "", fmt.Errorf("getting the Python function instance of Pulsar %s: %w", Version, err)
	}
	return filepath.Join(dir, "apache-pulsar-"+Version, "instances", "python-instance"), nil
}
