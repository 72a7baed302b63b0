// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

// authorization is what one request sends to authenticate. The zero value sends nothing.
type authorization struct {
	method authparams.Method
	// header is the value of the header Authorization, empty for none.
	header string
	// secrets are the parts that no message may repeat.
	secrets []string
}

// set also sets the method: a broker with strictAuthMethod=true refuses requests without it, even with a client
// certificate (seen on 4.2.4).
func (a authorization) set(headers http.Header) {
	if a.header != "" {
		headers.Set("Authorization", a.header)
	}
	if name := a.methodName(); name != "" {
		headers.Set("X-Pulsar-Auth-Method-Name", name)
	}
}

// methodName is Pulsar's name of the method; empty for none.
func (a authorization) methodName() string {
	switch a.method {
	case authparams.None:
		return ""
	case authparams.OAuth2: // its token is a token like any other
		return string(authparams.Token)
	default:
		return string(a.method)
	}
}

// secret is what the binary protocol has in place of the header.
func (a authorization) secret() string {
	_, secret, _ := strings.Cut(a.header, " ")
	if a.method == authparams.Basic {
		decoded, _ := base64.StdEncoding.DecodeString(secret) // as basic encoded it
		return string(decoded)
	}
	return secret
}

// redact removes what a server in between may echo.
func (a authorization) redact(text string) string {
	for _, secret := range a.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "["+string(a.method)+"]")
		}
	}
	return text
}

func bearer(method authparams.Method, token string) authorization {
	return authorization{method: method, header: "Bearer " + token, secrets: []string{token}}
}

// basic encodes a user and a password as in RFC 7617.
func basic(user, password string) authorization {
	encoded := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return authorization{method: authparams.Basic, header: "Basic " + encoded, secrets: []string{encoded, password}}
}
