// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/python"
)

// pythonPackages returns the directory of the packages that an instance imports, installed once per Python and list.
func pythonPackages(ctx context.Context, kit python.Python, progress io.Writer) (dir string, err error) {
	root, err := binaries.Checkout()
	if err != nil {
		return "", err
	}
	list, err := os.ReadFile(filepath.Join(root, "test", "replica", "python", "requirements.txt"))
	if err != nil {
		return "", fmt.Errorf("reading the list of Python packages: %w", err)
	}
	key := fmt.Sprintf("python-%s-%x", kit.Tag, sha256.Sum256(list))[:len("python-")+len(kit.Tag)+9]
	dir, err = cache.Fill(ctx, key, progress, func(ctx context.Context, dir string) error {
		return cache.Announce(ctx, progress, "getting pulsar-client[functions] from PyPI (once)",
			func(ctx context.Context) error {
				return kit.Install(ctx, list, dir)
			})
	})
	if err != nil {
		return "", fmt.Errorf("getting Python packages: %w", err)
	}
	return dir, nil
}
