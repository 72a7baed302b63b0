// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/x509"
	"fmt"
	"os"
	"sync"
)

// caFile is a file of PEM certificates. It is read only after changes: reading the system's bundle of 200 KB for each
// request would cost more than the request.
type caFile struct {
	path string

	mu sync.Mutex
	// seen and content are guarded by mu. content is the last valid content.
	seen    os.FileInfo
	content string
}

// newCAFile reads the file; an empty path is for no certificates.
func newCAFile(path string) (*caFile, error) {
	f := &caFile{path: path}
	if path == "" {
		return f, nil
	}
	var err error
	if f.seen, err = os.Stat(path); err != nil {
		return nil, fmt.Errorf("reading caFile %q: %w", path, withoutPath(err))
	}
	if f.content, err = readFile(path); err != nil {
		return nil, fmt.Errorf("reading caFile %q: %w", path, err)
	}
	if !hasCertificate(f.content) {
		return nil, fmt.Errorf("caFile %q has no certificate: it must be PEM with at least one", path)
	}
	return f, nil
}

// pem returns the current certificates, and the last valid ones while the file is being replaced.
func (f *caFile) pem() string {
	if f.path == "" {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := os.Stat(f.path)
	if err != nil || (os.SameFile(now, f.seen) && now.ModTime().Equal(f.seen.ModTime()) && now.Size() == f.seen.Size()) {
		return f.content
	}
	if content, err := readFile(f.path); err == nil && hasCertificate(content) {
		f.seen, f.content = now, content
	}
	return f.content
}

func hasCertificate(pem string) bool { return x509.NewCertPool().AppendCertsFromPEM([]byte(pem)) }
