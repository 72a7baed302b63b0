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
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Method is an authentication method, by the short names of Pulsar's plugins.
type Method string

// The methods that Pulsar's brokers and this project support.
const (
	None   Method = ""
	Token  Method = "token"
	Basic  Method = "basic"
	TLS    Method = "tls"
	OAuth2 Method = "oauth2"
)

// MaxBytes is more than any token, key or bundle of certificates.
const MaxBytes = 1 << 20

// methodOf returns the method for a plugin name of client.conf. Athenz, SASL and Java's key stores are not supported.
func methodOf(plugin string) (method Method, known bool) {
	const classes = "org.apache.pulsar.client.impl.auth."
	switch plugin {
	case "", classes + "AuthenticationDisabled":
		return None, true
	case "token", classes + "AuthenticationToken":
		return Token, true
	case "tls", classes + "AuthenticationTls":
		return TLS, true
	case "basic", classes + "AuthenticationBasic":
		return Basic, true
	case "oauth2", classes + "oauth2.AuthenticationOAuth2":
		return OAuth2, true
	default:
		return None, false
	}
}

const pluginsWanted = "must be one of token, tls, basic, oauth2 or " +
	"org.apache.pulsar.client.impl.auth.Authentication{Token,Tls,Basic}, ...auth.oauth2.AuthenticationOAuth2"

// CheckPlugin validates the name of an authentication plugin. The error continues a sentence about the plugin.
func CheckPlugin(name string) error {
	if _, known := methodOf(name); !known {
		return errors.New(pluginsWanted)
	}
	return nil
}

// className matches the class names of plugins that Pulsar's Java clients load.
var className = regexp.MustCompile(`^(org|com|io)(\.[A-Za-z]\w*)+$`)

// badPlugin shows the name only if it is a class name: in a Secret with mixed up keys it may be a token.
func badPlugin(plugin string) error {
	name := ""
	if plugin = strings.TrimSpace(plugin); len(plugin) <= backlog.MostQuoted && className.MatchString(plugin) {
		name = " " + strconv.Quote(plugin)
	}
	return backlog.Errorf(backlog.ErrUnsupported, "authentication plugin%s: it %s", name, pluginsWanted)
}

// Params are a plugin's parameters, decoded. They are comparable.
type Params struct {
	Method Method

	Token Value

	User, Password string

	Certificate, Key Value

	Issuer, Audience, Scope string
	// Client has the JSON of a key file: client_id and client_secret.
	Client Value
	// IssuerRoots has the PEM certificates of the CA of the issuer; empty for the system's.
	IssuerRoots Value
}

// String returns the method, and no secret.
func (p Params) String() string { return "parameters of the " + string(p.Method) + " plugin" }

// GoString is String, for %#v.
func (p Params) GoString() string { return p.String() }

// Parse decodes authPlugin and authParams. Errors never repeat a value of the parameters, which may be secret.
func Parse(plugin, text string) (Params, error) {
	method, known := methodOf(strings.TrimSpace(plugin))
	if !known {
		return Params{}, badPlugin(plugin)
	}
	if len(text) > MaxBytes {
		return Params{}, fmt.Errorf("parameters of the %s plugin: they are longer than %d bytes", method, MaxBytes)
	}
	p := Params{Method: method}
	var err error
	switch method {
	case None:
	case Token:
		p.Token, err = decodeToken(text)
	case Basic:
		p.User, p.Password, err = decodeBasic(text)
	case TLS:
		p.Certificate, p.Key, err = decodeTLS(text)
	case OAuth2:
		err = p.decodeOAuth2(text)
	}
	if err != nil {
		return Params{}, fmt.Errorf("parameters of the %s plugin: %w", method, err)
	}
	return p, nil
}

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
