// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is who runs the program: no account of a machine, and the one that deploy/ names.
const user = "65532"

// file is a file of a layer, or a directory where its name ends with a slash.
type file struct {
	name string
	mode int64
	data []byte
}

// base is what programs expect to find: certificate authorities, time zones, and the name of their user.
func base(zones string) ([]file, error) {
	files := []file{
		{name: "etc/passwd", mode: 0o644, data: []byte(
			"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:" + user + ":" + user + ":nonroot:/:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nnonroot:x:" + user + ":\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: roots()},
		{name: "tmp/", mode: 0o1777},
	}
	unpacked, err := zoneFiles(zones)
	if err != nil {
		return nil, fmt.Errorf("reading the time zones: %w", err)
	}
	return append(files, unpacked...), nil
}

// roots are the authorities of Mozilla's root program, in the version of the module that go.sum pins. Those that
// Mozilla trusts under a condition are left out, for a PEM file cannot say it.
func roots() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
	}
	return text.Bytes()
}

// zoneFiles unpacks the time zones of the toolchain (lib/time/zoneinfo.zip).
func zoneFiles(archive string) ([]file, error) {
	reader, err := zip.OpenReader(archive)
	if err != nil {
		return nil, err
	}
	files, err := filesOf(reader, "usr/share/zoneinfo")
	return files, errors.Join(err, reader.Close())
}

// filesOf are the files of a tree, below a directory of the layer. Of a symbolic link it is the file that it names.
func filesOf(tree fs.FS, below string) (files []file, err error) {
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		files = append(files, file{name: path.Join(below, name), mode: 0o644, data: data})
		return err
	})
	return files, err
}

// programFiles are the binary, and the licence beside it.
func programFiles(b binary, licence string) ([]file, error) {
	executable, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(licence)
	if err != nil {
		return nil, err
	}
	return []file{
		{name: b.program, mode: 0o755, data: executable},
		{name: "licenses/LICENSE", mode: 0o644, data: text},
	}, nil
}

// tarball is the files, owned by root, sorted, with their directories before them and without a time.
func tarball(files []file) ([]byte, error) {
	all := slices.Clone(files)
	for name := range parents(files) {
		all = append(all, file{name: name, mode: 0o755})
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, f := range all {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Format: tar.FormatPAX}
		header.Typeflag = tar.TypeReg
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := writer.Write(f.data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	err := writer.Close() // before the bytes are looked at: it writes the last of them
	return out.Bytes(), err
}

func parents(files []file) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")); dir != "."; dir = path.Dir(dir) {
			names[dir+"/"] = true
		}
	}
	return names
}
