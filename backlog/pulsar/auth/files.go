// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

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

func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// File is a file that may change. It is read and decoded only after changes: reading the system's bundle of 200 KB for
// each request would cost more than the request. It is safe for concurrent use.
type File[T any] struct {
	path   string
	decode func(content string) (T, error)
	failed func(error)

	// mu guards all below.
	mu sync.Mutex
	// seen is the file that was last read; nil if reading failed.
	seen fs.FileInfo
	// valid is the last valid content, and trouble why the file does not have it; nil if it does.
	valid   T
	trouble error
}

// NewFile reads the file, which must be valid at the start; an empty path is for the zero value. failed is called when
// a change makes it invalid, and again when it is so for another reason. Errors omit the path.
func NewFile[T any](path string, decode func(content string) (T, error), failed func(error)) (*File[T], error) {
	f := &File[T]{path: path, decode: decode, failed: failed}
	return f, f.read()
}

// Current returns the last valid content.
func (f *File[T]) Current() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.trouble
	f.trouble = f.read()
	if f.failed != nil && f.trouble != nil && (before == nil || f.trouble.Error() != before.Error()) {
		f.failed(f.trouble)
	}
	return f.valid
}

// read reads the file if it has changed. Kubernetes replaces files of Secrets and ConfigMaps by changing a symbolic
// link, so the file is another one then.
func (f *File[T]) read() error {
	if f.path == "" {
		return nil
	}
	before := f.seen
	f.seen = nil
	now, err := os.Stat(f.path)
	if err != nil {
		return withoutPath(err)
	}
	if before != nil && os.SameFile(now, before) && now.ModTime().Equal(before.ModTime()) && now.Size() == before.Size() {
		f.seen = before
		return f.trouble
	}
	content, err := ReadFile(f.path)
	if err != nil {
		return err
	}
	f.seen = now
	decoded, err := f.decode(content)
	if err == nil {
		f.valid = decoded
	}
	return err
}

// NewCAFile is a file of PEM certificates.
func NewCAFile(path string, failed func(error)) (*File[string], error) {
	return NewFile(path, func(pem string) (string, error) {
		if !x509.NewCertPool().AppendCertsFromPEM([]byte(pem)) {
			return "", errors.New("it has no certificate: it must be PEM with at least one")
		}
		return pem, nil
	}, failed)
}

// Own are the program's own credentials. Files are read for every request, so a rotated token is used at once.
type Own struct {
	// TokenFile is a file with a token. At most one of TokenFile and Plugin is set.
	TokenFile string
	// Plugin is authPlugin of Pulsar's client.conf: token, tls, basic, oauth2 or their class names, and ParamsFile a file
	// with authParams.
	Plugin, ParamsFile string
	// CAFile has the PEM certificates of the brokers' CA; empty for the system's. It is read when it changes.
	CAFile string
}

// params are the current parameters, complete except for files that they name.
func (o Own) params() (decoded authparams.Params, err error) {
	switch {
	case o.TokenFile != "":
		return authparams.Params{Method: authparams.Token, Token: authparams.Value{Path: o.TokenFile}}, nil
	case o.ParamsFile == "":
		return authparams.Parse(o.Plugin, "")
	}
	text, err := ReadFile(o.ParamsFile)
	if err == nil {
		decoded, err = authparams.Parse(o.Plugin, text)
	}
	if err != nil {
		return authparams.Params{}, fmt.Errorf("authParamsFile %s: %w", o.ParamsFile, err)
	}
	return decoded, nil
}
