// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package authparams

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// decodeToken reads token:..., file:///..., {"token": "..."} or a token alone.
//
// Source: org.apache.pulsar.client.impl.auth.AuthenticationToken.configure.
func decodeToken(text string) (Value, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "file:"):
		file, err := parseFileURL(text)
		if err != nil {
			return Value{}, fmt.Errorf("token %w", err)
		}
		return file, nil
	case strings.HasPrefix(text, "{"):
		var fields struct {
			Token string `json:"token"`
		}
		if err := decodeObject(text, &fields); err != nil {
			return Value{}, err
		}
		text = fields.Token
	default:
		text = strings.TrimPrefix(text, "token:")
	}
	token, err := ParseToken(text)
	if err != nil {
		return Value{}, fmt.Errorf("token: %w", err)
	}
	return Value{Content: token}, nil
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
		return "", "", errors.New(
			`they must be {"userId": "...", "password": "..."} or user:password, with no ":" in the user`)
	}
	return user, password, nil
}

// decodeTLS reads tlsCertFile:...,tlsKeyFile:... or the same as JSON; each is a path or a data: URL with PEM.
//
// Source: org.apache.pulsar.client.impl.auth.AuthenticationTls.configure,
// AuthenticationUtil.configureFromPulsar1AuthParamString.
func decodeTLS(text string) (certificate, key Value, err error) {
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
	if certificate, err = parseValue(fields.CertFile); err != nil {
		return certificate, key, fmt.Errorf("tlsCertFile %w", err)
	}
	if key, err = parseValue(fields.KeyFile); err != nil {
		return certificate, key, fmt.Errorf("tlsKeyFile %w", err)
	}
	return certificate, key, nil
}

// splitTLS splits key:value pairs. A part without a key belongs to the previous value, since data: URLs have commas.
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

// decodeOAuth2 decodes the parameters of the client credentials flow. The time limits are our own; the client's ID
// comes from the key file.
//
// Source: org.apache.pulsar.client.impl.auth.oauth2.{AuthenticationOAuth2,ClientCredentialsFlow},
// pulsar-client-go/oauth2.
func (p *Params) decodeOAuth2(text string) (err error) {
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
	if p.Issuer, err = ParseIssuer(fields.IssuerURL); err != nil {
		return fmt.Errorf("issuerUrl %w", err)
	}
	if p.Client, err = parseValue(fields.PrivateKey); err != nil {
		return fmt.Errorf("privateKey %w", err)
	}
	if fields.TrustCerts != "" {
		if p.IssuerRoots, err = parseValue(fields.TrustCerts); err != nil {
			return fmt.Errorf("trustCertsFilePath %w", err)
		}
	}
	p.Audience, p.Scope = fields.Audience, fields.Scope
	return nil
}

// ParseIssuer returns the canonical URL of an OAuth2 issuer: without a trailing slash, with scheme and host as in
// backlog.ParseAdminURL. The error continues a sentence about the URL, and does not repeat the URL.
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

// decodeObject decodes one JSON object strictly. Its errors name an unknown key and never show a value.
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
