// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// maxTokenBytes is more than the headers a server accepts.
	maxTokenBytes = 64 << 10
	// idleConnTimeout keeps the connection from one round to the next, a minute later.
	idleConnTimeout = 90 * time.Second
)

// transport adds what the API's client leaves to others: the token, the bound on answers, and the status of an error.
type transport struct {
	next      *http.Transport
	tokenFile string
	limit     int64
}

func newTransport(config Config) (transport, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if config.CAFile != "" {
		pem, err := os.ReadFile(config.CAFile)
		if err != nil {
			return transport{}, fmt.Errorf("reading caFile: %w", err)
		}
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return transport{}, fmt.Errorf("caFile %q has no certificate: it must be PEM with at least one", config.CAFile)
		}
	}
	return transport{
		next: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: config.Timeout}).DialContext,
			TLSClientConfig:        tlsConfig,
			TLSHandshakeTimeout:    config.Timeout,
			IdleConnTimeout:        idleConnTimeout,
			MaxIdleConnsPerHost:    1,
			MaxResponseHeaderBytes: 64 << 10,
		},
		tokenFile: config.TokenFile,
		limit:     config.MaxAnswerBytes,
	}, nil
}

// statusKey is where RoundTrip leaves the status of the answer, for the API's client turns it into text.
type statusKey struct{}

func withStatus(ctx context.Context) (context.Context, *int) {
	status := new(int)
	return context.WithValue(ctx, statusKey{}, status), status
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.tokenFile != "" {
		token, err := readToken(t.tokenFile)
		if err != nil {
			return nil, tokenError{path: t.tokenFile, cause: err}
		}
		req = req.Clone(req.Context()) // a RoundTripper may not change its request
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if status, ok := req.Context().Value(statusKey{}).(*int); ok {
		*status = resp.StatusCode
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: t.limit, limit: t.limit}
	return resp, nil
}

// tokenError says that nothing was sent.
type tokenError struct {
	path  string
	cause error
}

func (e tokenError) Error() string { return fmt.Sprintf("token file %s: %s", e.path, e.cause) }

// readToken never shows the token in its errors.
func readToken(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", pathCause(err)
	}
	defer func() { _ = file.Close() }() // read only: nothing can be lost
	content, err := io.ReadAll(io.LimitReader(file, maxTokenBytes+1))
	if err != nil {
		return "", pathCause(err)
	}
	token := strings.TrimSpace(string(content))
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

// pathCause leaves out the path, which the caller's text has.
func pathCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// tooLongError is returned by a body that goes over the limit.
type tooLongError struct{ limit int64 }

func (e tooLongError) Error() string { return fmt.Sprintf("more than %d bytes", e.limit) }

// boundedBody ends in tooLongError after limit bytes.
type boundedBody struct {
	io.ReadCloser
	left, limit int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, tooLongError{limit: b.limit}
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, tooLongError{limit: b.limit}
	}
	return n, err
}
