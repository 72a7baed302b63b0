// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// maxFileBytes is more than any token, key or bundle of certificates.
const maxFileBytes = 1 << 20

// reference is a value in the parameters of a plugin: the content, or the path of a file that has it.
type reference struct {
	content string
	path    string
}

// parseReference understands data: URLs, which hold the content, file: URLs and absolute paths.
func parseReference(text string) (reference, error) {
	switch {
	case strings.HasPrefix(text, "data:"):
		content, err := parseDataURL(text)
		return reference{content: content}, err
	case strings.HasPrefix(text, "file:"):
		return parseFileURL(text)
	case filepath.IsAbs(text):
		return reference{path: text}, nil
	default:
		return reference{}, errors.New("must be data:;base64,<content>, file:///<path> or an absolute path")
	}
}

// parseDataURL takes the content out of data:[type][;base64],content; the type does not matter.
func parseDataURL(text string) (string, error) {
	head, body, found := strings.Cut(text, ",")
	if !found {
		return "", errors.New("is a data: URL without a comma: it must look like data:;base64,<content>")
	}
	if !strings.HasSuffix(head, ";base64") {
		content, err := url.PathUnescape(body)
		if err != nil {
			return "", errors.New("is a data: URL with a bad %-escape") // the cause repeats the text
		}
		return content, nil
	}
	content, err := base64.StdEncoding.DecodeString(strings.TrimSpace(body))
	if err != nil {
		return "", errors.New("is a data: URL that is not base64")
	}
	return string(content), nil
}

func parseFileURL(text string) (reference, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" || !filepath.IsAbs(u.Path) {
		return reference{}, errors.New("is a file: URL without an absolute path: it must look like file:///path")
	}
	return reference{path: u.Path}, nil
}

// read returns the content; its errors leave the path out. Reading it each time costs some 10 µs, which no rule about
// modification times can beat in being right: Kubernetes rotates projected tokens and Secrets by swapping a link.
func (r reference) read() (reference, error) {
	if r.path == "" {
		return r, nil
	}
	content, err := readFile(r.path)
	return reference{content: content}, err
}

func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", pathCause(err)
	}
	defer func() { _ = file.Close() }() // read only: nothing can be lost
	content, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return "", pathCause(err)
	}
	if len(content) > maxFileBytes {
		return "", fmt.Errorf("it is longer than %d bytes", maxFileBytes)
	}
	return string(content), nil
}

// named is a parameter that may name a file.
type named struct {
	key string
	*reference
}

func (p *params) references() []named {
	return []named{
		{"token", &p.token},
		{"tlsCertFile", &p.certificate},
		{"tlsKeyFile", &p.key},
		{"privateKey", &p.client},
		{"trustCertsFilePath", &p.issuerRoots},
	}
}

// file is the first parameter that names a file, empty for none.
func (p params) file() (key, path string) {
	for _, n := range p.references() {
		if n.path != "" {
			return n.key, n.path
		}
	}
	return "", ""
}

// read returns the parameters with the content of all files that they name.
func (p params) read() (params, error) {
	tokenFile := p.token.path
	for _, n := range p.references() {
		content, err := n.read()
		if err != nil {
			return params{}, fmt.Errorf("%s file %s: %w", n.key, n.path, err)
		}
		*n.reference = content
	}
	if tokenFile == "" {
		return p, nil
	}
	token, err := cleanToken(p.token.content)
	if err != nil {
		return params{}, fmt.Errorf("token file %s: %w", tokenFile, err)
	}
	p.token.content = token
	return p, nil
}
