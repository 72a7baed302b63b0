// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package authparams

import (
	"errors"
	"fmt"
	"regexp"
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
