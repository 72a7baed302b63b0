// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Variable is the environment variable that moves the cache.
const Variable = "PULSAR_AUTOSCALER_CACHE"

const lockPoll = 200 * time.Millisecond

// Dir is the absolute path of the cache, made if need be: $PULSAR_AUTOSCALER_CACHE, else pulsar-autoscaler in the
// user's cache directory.
func Dir() (string, error) {
	dir := os.Getenv(Variable)
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding a cache directory: %w: set %s to a directory with 2 GB of space", err, Variable)
		}
		dir = filepath.Join(base, "pulsar-autoscaler")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache directory: %w: set %s to a directory that can be written", err, Variable)
	}
	return dir, nil
}

// Fill returns the cache directory of key, a single path element with the name and version of the content, e.g.
// "kubernetes-v1.36.3-2f1c9a". If it is missing, build fills an empty directory dir, which is moved to its final path
// once build has returned nil: build must not record dir. One process builds at a time; the others wait and report that
// to progress (nil for none). Fill writes to progress only before and after build.
func Fill(ctx context.Context, key string, progress io.Writer,
	build func(ctx context.Context, dir string) error,
) (dir string, err error) {
	base, err := Dir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(base, key)
	if complete(dir) {
		return dir, nil
	}
	unlock, err := lock(ctx, dir+".lock", key, orDiscard(progress))
	if err != nil {
		return "", fmt.Errorf("locking %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if complete(dir) {
		return dir, nil
	}
	if err := fill(ctx, dir, build); err != nil {
		return "", err
	}
	return dir, nil
}

// fill runs under the lock, so a partial directory is a leftover of a killed process.
func fill(ctx context.Context, dir string, build func(ctx context.Context, dir string) error) error {
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("clearing %s: %w", partial, err)
	}
	if err := os.Mkdir(partial, 0o755); err != nil {
		return fmt.Errorf("filling the cache: %w", err)
	}
	if err := build(ctx, partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.Rename(partial, dir); err != nil {
		return fmt.Errorf("filling the cache: %w", err)
	}
	return nil
}

func complete(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// lock waits for the lock file. The kernel releases the lock with its owner, so a killed process blocks no other; the
// file itself stays, because its removal would let two processes lock two files of the same name.
func lock(ctx context.Context, path, key string, progress io.Writer) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	start, next := time.Now(), time.Duration(0)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(err, file.Close())
		}
		if waited := time.Since(start); waited >= next {
			say(progress, "%s is being made by another process: waiting, %s so far", key, waited.Round(time.Second))
			next = waited + progressEvery
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-ticker.C:
		}
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// say writes a line for a person; a reader that has gone is no reason to stop the work.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}
