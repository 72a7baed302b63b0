// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

// readParams returns the parameters with the content of all files that they name; its errors omit the content. Reading
// each time takes about 10 µs and does not depend on modification times: Kubernetes rotates projected tokens and
// Secrets by swapping a link.
func readParams(p authparams.Params) (authparams.Params, error) {
	tokenFile := p.Token.Path
	for _, value := range p.Values() {
		if value.Path == "" {
			continue
		}
		content, err := ReadFile(value.Path)
		if err != nil {
			return authparams.Params{}, fmt.Errorf("%s file %s: %w", value.Key, value.Path, err)
		}
		*value.Value = authparams.Value{Content: content}
	}
	if tokenFile == "" {
		return p, nil
	}
	token, err := authparams.ParseToken(p.Token.Content)
	if err != nil {
		return authparams.Params{}, fmt.Errorf("token file %s: %w", tokenFile, err)
	}
	p.Token.Content = token
	return p, nil
}

// ReadFile reads at most authparams.MaxBytes. It omits the path from its errors, since the caller's text has it.
func ReadFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", withoutPath(err)
	}
	defer func() { _ = file.Close() }() // read only: an error has no effect
	content, err := io.ReadAll(io.LimitReader(file, authparams.MaxBytes+1))
	if err != nil {
		return "", withoutPath(err)
	}
	if len(content) > authparams.MaxBytes {
		return "", fmt.Errorf("it is longer than %d bytes", authparams.MaxBytes)
	}
	return string(content), nil
}

// IsSameFile reports whether a file is unchanged. Kubernetes replaces files of Secrets and ConfigMaps by changing a
// symbolic link, so the file is another one then.
func IsSameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
