// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/x509"
	"errors"
	"os"
	"sync"
)

// CAFile is a file of PEM certificates. It is read only after changes: reading the system's bundle of 200 KB for each
// request would cost more than the request. It is safe for concurrent use.
type CAFile struct {
	path string

	mu sync.Mutex
	// seen and content are guarded by mu. content is the last valid content.
	seen    os.FileInfo
	content string
}

// NewCAFile reads the file; an empty path is for no certificates. Its errors omit the path.
func NewCAFile(path string) (*CAFile, error) {
	f := &CAFile{path: path}
	if path == "" {
		return f, nil
	}
	var err error
	if f.seen, err = os.Stat(path); err != nil {
		return nil, withoutPath(err)
	}
	if f.content, err = ReadFile(path); err != nil {
		return nil, err
	}
	if !hasCertificate(f.content) {
		return nil, errors.New("it has no certificate: it must be PEM with at least one")
	}
	return f, nil
}

// PEM returns the current certificates, and the last valid ones while the file is being replaced.
func (f *CAFile) PEM() string {
	if f.path == "" {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := os.Stat(f.path)
	if err != nil || IsSameFile(now, f.seen) {
		return f.content
	}
	if content, err := ReadFile(f.path); err == nil && hasCertificate(content) {
		f.seen, f.content = now, content
	}
	return f.content
}

func hasCertificate(pem string) bool { return x509.NewCertPool().AppendCertsFromPEM([]byte(pem)) }
