// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// maxTokenBytes is more than the headers a broker accepts (Jetty: 8 KiB).
const maxTokenBytes = 64 << 10

// authMethod says how a client proves who it is, in the short names of Pulsar's plugins.
type authMethod string

const (
	methodNone   authMethod = ""
	methodToken  authMethod = "token"
	methodBasic  authMethod = "basic"
	methodTLS    authMethod = "tls"
	methodOAuth2 authMethod = "oauth2"
)

// authenticator makes what a request shows. Its errors are texts for users and hold no secret.
type authenticator interface {
	// prove may ask an issuer, within ctx.
	prove(ctx context.Context) (proof, error)
	// doubt says that Pulsar refused the proof: what is remembered of it must not be shown for long.
	doubt(refused proof)
}

// proof is what one request shows. The zero value shows nothing.
type proof struct {
	method authMethod
	// authorization is the header of that name, empty for none.
	authorization string
	// secrets are the parts that no message may repeat.
	secrets []string
}

// put names the method too: a broker with strictAuthMethod=true refuses requests without the name, also with a client
// certificate (seen on 4.2.4).
func (p proof) put(header http.Header) {
	if p.authorization != "" {
		header.Set("Authorization", p.authorization)
	}
	switch p.method {
	case methodNone:
	case methodOAuth2: // what it shows is a token like any other
		header.Set("X-Pulsar-Auth-Method-Name", string(methodToken))
	default:
		header.Set("X-Pulsar-Auth-Method-Name", string(p.method))
	}
}

// redact takes out what a server between may echo.
func (p proof) redact(words string) string {
	for _, secret := range p.secrets {
		if secret != "" {
			words = strings.ReplaceAll(words, secret, "["+string(p.method)+"]")
		}
	}
	return words
}

// constant shows the same with every request.
type constant proof

func (c constant) prove(context.Context) (proof, error) { return proof(c), nil }

func (constant) doubt(proof) {}

func bearer(method authMethod, token string) proof {
	return proof{method: method, authorization: "Bearer " + token, secrets: []string{token}}
}

// basic encodes a user and a password as RFC 7617 says.
func basic(user, password string) proof {
	encoded := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return proof{method: methodBasic, authorization: "Basic " + encoded, secrets: []string{encoded, password}}
}

// cleanToken never shows the token in its errors.
func cleanToken(raw string) (string, error) {
	token := strings.TrimSpace(raw)
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
