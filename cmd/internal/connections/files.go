// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

// bundles are files of certificates by path. It is safe for concurrent use.
type bundles struct {
	// mu guards known.
	mu    sync.Mutex
	known map[string]*auth.CAFile
}

// read returns the current content, or the last good one while the file is being replaced; empty without a path.
func (b *bundles) read(path string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	file := b.known[path]
	if file == nil {
		var err error
		if file, err = auth.NewCAFile(path); err != nil {
			return "", err
		}
		if b.known == nil {
			b.known = map[string]*auth.CAFile{}
		}
		b.known[path] = file
	}
	return file.PEM(), nil
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
func (w *watchedFile) changed(now time.Time) (string, error) {
	if !w.checkedAt.IsZero() && now.Sub(w.checkedAt) < checkAgain {
		return "", errNoChange
	}
	w.checkedAt = now
	info, err := os.Stat(w.path)
	if err != nil {
		return "", err
	}
	if w.info != nil && auth.IsSameFile(info, w.info) {
		return "", errNoChange
	}
	content, err := auth.ReadFile(w.path)
	if err != nil {
		return "", err
	}
	w.info = info
	return content, nil
}
