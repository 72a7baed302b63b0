// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// maxTokenBytes is more than the headers a broker accepts (Jetty: 8 KiB).
const maxTokenBytes = 64 << 10

// authenticator puts credentials on a request. It is called for every request, after the host was allowed. Its errors
// are texts for users and hold no credential.
type authenticator interface {
	authenticate(req *http.Request) error
}

func newAuthenticator(config Config) (authenticator, error) {
	switch {
	case config.TokenFile != "":
		return tokenFile(config.TokenFile), nil
	case config.Token != "":
		token, err := cleanToken(config.Token)
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		return literalToken(token), nil
	default:
		return anonymous{}, nil
	}
}

type anonymous struct{}

func (anonymous) authenticate(*http.Request) error { return nil }

type literalToken string

// authenticate names the method too: a broker with strictAuthMethod=true refuses requests without the name.
func (t literalToken) authenticate(req *http.Request) error {
	req.Header.Set("Authorization", "Bearer "+string(t))
	req.Header.Set("X-Pulsar-Auth-Method-Name", "token")
	return nil
}

// tokenFile is the path of a file with a token. Reading it each time costs some 10 µs, which no rule about
// modification times can beat in being right: Kubernetes rotates projected tokens by swapping a link.
type tokenFile string

func (f tokenFile) authenticate(req *http.Request) error {
	token, err := f.read()
	if err != nil {
		return fmt.Errorf("token file %s: %w", string(f), err)
	}
	return literalToken(token).authenticate(req)
}

func (f tokenFile) read() (string, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return "", pathCause(err)
	}
	defer func() { _ = file.Close() }() // read only: nothing can be lost
	content, err := io.ReadAll(io.LimitReader(file, maxTokenBytes+1))
	if err != nil {
		return "", pathCause(err)
	}
	return cleanToken(string(content))
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
