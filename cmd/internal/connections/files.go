// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// maxCredentialBytes exceeds any parameters or bundle of certificates.
const maxCredentialBytes = 1 << 20

// readBounded returns the content of a file of at most the given size. Errors name the path.
func readBounded(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only: nothing can be lost
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(content)) > most:
		return nil, fmt.Errorf("%s is longer than %d bytes", path, most)
	default:
		return content, nil
	}
}

// bundles are files of certificates, each read again only after a change: reading the system's bundle of 200 KB would
// cost more than the request. It is safe for concurrent use.
type bundles struct {
	// mu guards known.
	mu    sync.Mutex
	known map[string]bundle
}

type bundle struct {
	info    fs.FileInfo
	content string
}

// read returns the current content, or the last good one while the file is being replaced; empty without a path.
func (b *bundles) read(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(path)
	before, seen := b.recall(path)
	if seen && (err != nil || isSame(info, before.info)) {
		return before.content, nil
	}
	if err != nil {
		return "", err
	}
	content, err := readBounded(path, maxCredentialBytes)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(content) {
		err = fmt.Errorf("%s has no certificate, it must be PEM with at least one", path)
	}
	switch {
	case err != nil && seen:
		return before.content, nil
	case err != nil:
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = map[string]bundle{}
	}
	b.known[path] = bundle{info, string(content)}
	return string(content), nil
}

func (b *bundles) recall(path string) (bundle, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, seen := b.known[path]
	return before, seen
}

// isSame reports whether the file is unchanged. Kubernetes replaces files of Secrets and ConfigMaps by changing a
// symbolic link, so the file is another one then.
func isSame(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// checkAgain is the shortest time between two checks of the file of connections.
const checkAgain = 5 * time.Second

// errNoChange means that the file is unchanged.
var errNoChange = errors.New("no change")

// watchedFile is a file that is checked for changes from time to time.
type watchedFile struct {
	path      string
	checkedAt time.Time
	info      fs.FileInfo
}

// changed returns the content if the file has changed; errNoChange if it has not, or was checked less than checkAgain
// ago.
func (w *watchedFile) changed(now time.Time) ([]byte, error) {
	if !w.checkedAt.IsZero() && now.Sub(w.checkedAt) < checkAgain {
		return nil, errNoChange
	}
	w.checkedAt = now
	info, err := os.Stat(w.path)
	if err != nil {
		return nil, err
	}
	if w.info != nil && isSame(info, w.info) {
		return nil, errNoChange
	}
	content, err := readBounded(w.path, maxConnectionsBytes)
	if err != nil {
		return nil, err
	}
	w.info = info
	return content, nil
}
