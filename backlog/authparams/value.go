// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package authparams

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Value is a value in the parameters of a plugin: the content, or the path of a file that has it.
type Value struct {
	Content string
	Path    string
}

// parseValue decodes data: URLs, which contain the content, file: URLs and absolute paths.
func parseValue(text string) (Value, error) {
	switch {
	case strings.HasPrefix(text, "data:"):
		content, err := parseDataURL(text)
		return Value{Content: content}, err
	case strings.HasPrefix(text, "file:"):
		return parseFileURL(text)
	case filepath.IsAbs(text):
		return Value{Path: text}, nil
	default:
		return Value{}, errors.New("must be data:;base64,<content>, file:///<path> or an absolute path")
	}
}

// parseDataURL returns the content of data:[type][;base64],content; the type is ignored.
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

func parseFileURL(text string) (Value, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" || !filepath.IsAbs(u.Path) {
		return Value{}, errors.New("is a file: URL without an absolute path: it must look like file:///path")
	}
	return Value{Path: u.Path}, nil
}

// NamedValue is a parameter that may name a file.
type NamedValue struct {
	Key string
	*Value
}

// Values are all parameters that may name a file.
func (p *Params) Values() []NamedValue {
	return []NamedValue{
		{"token", &p.Token},
		{"tlsCertFile", &p.Certificate},
		{"tlsKeyFile", &p.Key},
		{"privateKey", &p.Client},
		{"trustCertsFilePath", &p.IssuerRoots},
	}
}

// File is the first parameter that names a file, empty for none.
func (p Params) File() (key, path string) {
	for _, value := range p.Values() {
		if value.Path != "" {
			return value.Key, value.Path
		}
	}
	return "", ""
}

// FindFile returns the path of a file that the parameters name, empty for none. The plugin may be unknown, with files
// under any key of its JSON.
func FindFile(plugin, text string) (path string) {
	parsed, err := Parse(plugin, text)
	if err == nil && parsed.Method != None {
		_, path = parsed.File()
		return path
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "file:") {
		return text
	}
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if file, ok := fields[key].(string); ok && (strings.HasPrefix(file, "file:") || strings.HasPrefix(file, "/")) {
			return file
		}
	}
	return ""
}

// maxTokenBytes is more than the headers a broker accepts (Jetty: 8 KiB).
const maxTokenBytes = 64 << 10

// ParseToken returns the token without surrounding blanks. Its errors never show the token.
func ParseToken(text string) (string, error) {
	token := strings.TrimSpace(text)
	switch {
	case token == "":
		return "", errors.New("it is empty")
	case len(token) > maxTokenBytes:
		return "", fmt.Errorf("it is longer than %d bytes", maxTokenBytes)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("it has a space, a line break or a character outside ASCII inside")
	}
	return token, nil
}
