// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// plugins are the names that Pulsar's client.conf knows a method by. Those of brokers with which we cannot speak,
// Athenz, SASL and Java's key stores, are missing.
var plugins = map[string]authMethod{
	"": methodNone,
	"org.apache.pulsar.client.impl.auth.AuthenticationDisabled": methodNone,
	"token":  methodToken,
	"tls":    methodTLS,
	"basic":  methodBasic,
	"oauth2": methodOAuth2,
	"org.apache.pulsar.client.impl.auth.AuthenticationToken":         methodToken,
	"org.apache.pulsar.client.impl.auth.AuthenticationTls":           methodTLS,
	"org.apache.pulsar.client.impl.auth.AuthenticationBasic":         methodBasic,
	"org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2": methodOAuth2,
}

const pluginsWanted = "must be one of token, tls, basic, oauth2 or " +
	"org.apache.pulsar.client.impl.auth.Authentication{Token,Tls,Basic}, ...auth.oauth2.AuthenticationOAuth2"

// CheckPlugin says what is wrong with the name of an authentication plugin. The error continues a sentence about it.
func CheckPlugin(name string) error {
	if _, known := plugins[name]; !known {
		return errors.New(pluginsWanted)
	}
	return nil
}

// className is what the names of plugins look like that Pulsar's Java clients load.
var className = regexp.MustCompile(`^(org|com|io)(\.[A-Za-z]\w*)+$`)

// badPlugin shows the name of a class alone: in a Secret whose keys were mixed up, a token stands in its place.
func badPlugin(plugin string) error {
	name := ""
	if plugin = strings.TrimSpace(plugin); len(plugin) <= backlog.MostQuoted && className.MatchString(plugin) {
		name = " " + strconv.Quote(plugin)
	}
	return backlog.Because(backlog.ErrUnsupported, "authentication plugin%s: it %s", name, pluginsWanted)
}

// params are a plugin's parameters, decoded. They are comparable.
type params struct {
	method authMethod

	token reference

	user, password string

	certificate, key reference

	issuer, audience, scope string
	// client has the JSON of a key file: client_id and client_secret.
	client reference
	// issuerRoots has the PEM certificates that sign the issuer's; empty for the system's.
	issuerRoots reference
}

// decodeParams reads authPlugin and authParams. Errors never repeat a value of the parameters, which may be secret.
func decodeParams(plugin, text string) (params, error) {
	method, known := plugins[strings.TrimSpace(plugin)]
	if !known {
		return params{}, badPlugin(plugin)
	}
	if len(text) > maxFileBytes {
		return params{}, fmt.Errorf("parameters of the %s plugin: they are longer than %d bytes", method, maxFileBytes)
	}
	p := params{method: method}
	var err error
	switch method {
	case methodNone:
	case methodToken:
		p.token, err = decodeToken(text)
	case methodBasic:
		p.user, p.password, err = decodeBasic(text)
	case methodTLS:
		p.certificate, p.key, err = decodeTLS(text)
	case methodOAuth2:
		err = p.decodeOAuth2(text)
	}
	if err != nil {
		return params{}, fmt.Errorf("parameters of the %s plugin: %w", method, err)
	}
	return p, nil
}

// decodeToken reads token:..., file:///..., {"token": "..."} or a token alone.
//
// Source: org.apache.pulsar.client.impl.auth.AuthenticationToken.configure.
func decodeToken(text string) (reference, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "file:"):
		file, err := parseFileURL(text)
		if err != nil {
			return reference{}, fmt.Errorf("token %w", err)
		}
		return file, nil
	case strings.HasPrefix(text, "{"):
		var fields struct {
			Token string `json:"token"`
		}
		if err := decodeObject(text, &fields); err != nil {
			return reference{}, err
		}
		text = fields.Token
	default:
		text = strings.TrimPrefix(text, "token:")
	}
	token, err := cleanToken(text)
	if err != nil {
		return reference{}, fmt.Errorf("token: %w", err)
	}
	return reference{content: token}, nil
}

// decodeBasic reads {"userId": "...", "password": "..."} or user:password.
//
// Source: org.apache.pulsar.client.impl.auth.AuthenticationBasic.configure.
func decodeBasic(text string) (user, password string, err error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		var fields struct {
			UserID   string `json:"userId"`
			Password string `json:"password"`
		}
		if err := decodeObject(text, &fields); err != nil {
			return "", "", err
		}
		user, password = fields.UserID, fields.Password
	} else {
		user, password, _ = strings.Cut(text, ":")
	}
	if user == "" || password == "" || strings.Contains(user, ":") {
		return "", "",
			errors.New(`they must be {"userId": "...", "password": "..."} or user:password, with no ":" in the user`)
	}
	return user, password, nil
}

// decodeTLS reads tlsCertFile:...,tlsKeyFile:... or the same as JSON; each is a path or a data: URL with PEM.
//
// Source: org.apache.pulsar.client.impl.auth.AuthenticationTls.configure,
// AuthenticationUtil.configureFromPulsar1AuthParamString.
func decodeTLS(text string) (certificate, key reference, err error) {
	var fields struct {
		CertFile string `json:"tlsCertFile"`
		KeyFile  string `json:"tlsKeyFile"`
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		err = decodeObject(text, &fields)
	} else {
		fields.CertFile, fields.KeyFile, err = splitTLS(text)
	}
	if err != nil {
		return certificate, key, err
	}
	if certificate, err = parseReference(fields.CertFile); err != nil {
		return certificate, key, fmt.Errorf("tlsCertFile %w", err)
	}
	if key, err = parseReference(fields.KeyFile); err != nil {
		return certificate, key, fmt.Errorf("tlsKeyFile %w", err)
	}
	return certificate, key, nil
}

// splitTLS cuts key:value pairs apart. A part that begins with no key belongs to the value before: data: URLs have
// commas.
func splitTLS(text string) (certFile, keyFile string, err error) {
	const certKey, keyKey = "tlsCertFile:", "tlsKeyFile:"
	wrong := errors.New("they must be tlsCertFile:...,tlsKeyFile:... or the same as JSON")
	var value *string // of the key that was read last
	start, at := 0, 0
	for part := range strings.SplitSeq(text, ",") {
		key := strings.TrimLeft(part, " ")
		begin := at + len(part) - len(key)
		switch {
		case strings.HasPrefix(key, certKey):
			value, start = &certFile, begin+len(certKey)
		case strings.HasPrefix(key, keyKey):
			value, start = &keyFile, begin+len(keyKey)
		case value == nil || strings.Contains(key, ":"):
			return "", "", wrong
		}
		at += len(part)
		*value = text[start:at]
		at++ // the comma
	}
	return certFile, keyFile, nil
}

// decodeOAuth2 reads the parameters of the client credentials flow. Time limits are our own; a client's id comes from
// the key file.
//
// Source: org.apache.pulsar.client.impl.auth.oauth2.{AuthenticationOAuth2,ClientCredentialsFlow},
// pulsar-client-go/oauth2.
func (p *params) decodeOAuth2(text string) (err error) {
	var fields struct {
		Type           string          `json:"type"`
		IssuerURL      string          `json:"issuerUrl"`
		PrivateKey     string          `json:"privateKey"`
		Audience       string          `json:"audience"`
		Scope          string          `json:"scope"`
		TrustCerts     string          `json:"trustCertsFilePath"`
		ClientID       json.RawMessage `json:"clientId"`
		ConnectTimeout json.RawMessage `json:"connectTimeout"`
		ReadTimeout    json.RawMessage `json:"readTimeout"`
	}
	if err := decodeObject(text, &fields); err != nil {
		return err
	}
	if fields.Type != "" && fields.Type != "client_credentials" {
		return fmt.Errorf("type is %q: it must be client_credentials", backlog.Quote(fields.Type))
	}
	if p.issuer, err = ParseIssuer(fields.IssuerURL); err != nil {
		return fmt.Errorf("issuerUrl %w", err)
	}
	if p.client, err = parseReference(fields.PrivateKey); err != nil {
		return fmt.Errorf("privateKey %w", err)
	}
	if fields.TrustCerts != "" {
		if p.issuerRoots, err = parseReference(fields.TrustCerts); err != nil {
			return fmt.Errorf("trustCertsFilePath %w", err)
		}
	}
	p.audience, p.scope = fields.Audience, fields.Scope
	return nil
}

// ParseIssuer returns the one spelling of an OAuth2 issuer's URL: without a slash at the end, scheme and host as
// backlog.ParseAdminURL spells them. The error continues a sentence about the URL, and does not repeat it.
func ParseIssuer(text string) (string, error) {
	const want = "must be a URL such as https://issuer/path, with no credentials and no query"
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.Opaque != "" ||
		strings.ContainsAny(text, "?#") {
		return "", errors.New(want)
	}
	authority, err := backlog.ParseAuthority(u)
	if err != nil {
		return "", errors.New(want)
	}
	return u.Scheme + "://" + authority + strings.TrimRight(u.EscapedPath(), "/"), nil
}

// decodeObject decodes one JSON object strictly. Its errors name a wrong key and never show a value.
func decodeObject(text string, fields any) error {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(fields)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		return errors.New("there is something after the JSON object")
	}
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s must be a text", kind.Field)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Errorf("unknown key %s", backlog.Quote(strings.TrimPrefix(err.Error(), "json: unknown field ")))
	default:
		return errors.New("they are not a JSON object")
	}
}
