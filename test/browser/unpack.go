// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/andybalholm/brotli"
)

const (
	launcher = "chromium"
	program  = "headless-shell"

	// maxFile is twice the size of the program.
	maxFile = 400 << 20
)

// files returns what starts the program from any directory: with its libraries, which a machine may lack, and with one
// language and its fonts alone, so that pages look the same on every machine. In the locale C it has en-US@posix, which
// is no language of JavaScript.
func files() map[string]string {
	return map[string]string{
		launcher: `#!/bin/sh
dir=${0%/*}
export LC_ALL=en_US.UTF-8 FONTCONFIG_FILE="$dir/fonts/fonts.conf"
LD_LIBRARY_PATH="$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$dir/` + program + `" "$@"
`,
		"fonts/fonts.conf": `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">.</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
`,
	}
}

// verify compares a file with an integrity as npm writes it.
func verify(name, integrity string) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading the package: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha512.New()
	if _, err := io.Copy(sum, file); err != nil {
		return fmt.Errorf("reading the package: %w", err)
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != integrity {
		return fmt.Errorf("the package has integrity %s, not %s: it is not the pinned one", got, integrity)
	}
	return nil
}

// unpack writes the program, its libraries and fonts into dir, and the launcher beside them.
func unpack(tarball, dir string) (err error) {
	file, err := os.Open(tarball)
	if err != nil {
		return fmt.Errorf("reading the package: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	unzipped, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return fmt.Errorf("reading the package: %w", err)
	}
	missing := map[string]string{
		"package/bin/chromium.br": program, "package/bin/al2023.tar.br": "lib", "package/bin/fonts.tar.br": "fonts",
	}
	err = each(unzipped, func(name string, content io.Reader) error {
		target, wanted := missing[name]
		if !wanted {
			return nil
		}
		delete(missing, name)
		content = brotli.NewReader(content)
		if path.Ext(name[:len(name)-len(".br")]) == ".tar" {
			return unpackFlat(content, filepath.Join(dir, target))
		}
		return write(filepath.Join(dir, target), content)
	})
	if err != nil {
		return fmt.Errorf("unpacking the package: %w", err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("unpacking the package: it lacks %v", missing)
	}
	for name, text := range files() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil { //nolint:gosec // a program
			return fmt.Errorf("unpacking the package: %w", err)
		}
	}
	return nil
}

// unpackFlat writes the files of a tar archive into one directory.
func unpackFlat(archive io.Reader, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return each(archive, func(name string, content io.Reader) error {
		return write(filepath.Join(dir, path.Base(name)), content)
	})
}

// each calls use for every regular file of a tar archive.
func each(archive io.Reader, use func(name string, content io.Reader) error) error {
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := use(header.Name, reader); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

// write writes an executable file of a bounded size.
func write(name string, content io.Reader) (err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // a program
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	n, err := io.Copy(file, io.LimitReader(content, maxFile+1))
	if err == nil && n > maxFile {
		err = fmt.Errorf("more than %d bytes", maxFile)
	}
	return err
}
