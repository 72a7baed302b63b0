// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// maxDiscoveryBytes is more than any issuer's document, which has some 5 KB. A token's answer is bounded by the library
// at 1 MiB.
const maxDiscoveryBytes = 256 << 10

// keyFile is what issuers hand out for a client. Other keys, such as client_email and issuer_url, are not needed.
//
// Source: org.apache.pulsar.client.impl.auth.oauth2.KeyFile, pulsar-client-go/oauth2.KeyFile.
type keyFile struct {
	Type         string `json:"type"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

func decodeKeyFile(content string) (keyFile, error) {
	var k keyFile
	if err := json.Unmarshal([]byte(content), &k); err != nil {
		return keyFile{}, errors.New("privateKey is no JSON object with texts") // the cause may show a part of it
	}
	switch {
	case k.Type != "" && k.Type != "client_credentials" && k.Type != "sn_service_account":
		return keyFile{}, errors.New("privateKey has a type that is not client_credentials")
	case k.ClientID == "" || k.ClientSecret == "":
		return keyFile{}, errors.New("privateKey must have client_id and client_secret")
	}
	return k, nil
}

// newIssuerClient takes a client of its own: an issuer never sees what brokers see, and is never left unchecked.
func newIssuerClient(p params, transport *http.Transport, m *metrics, timeout time.Duration) (*issuerClient, error) {
	k, err := decodeKeyFile(p.client.content)
	if err != nil {
		return nil, err
	}
	return &issuerClient{
		params: p, id: k.ClientID, secret: k.ClientSecret, http: newHTTPClient(transport), metrics: m, timeout: timeout,
		now: time.Now, turn: make(chan struct{}, 1),
	}, nil
}

// request asks where tokens are, and for one. Neither request is redirected: the secret is for the issuer alone.
func (c *issuerClient) request(ctx context.Context) (grant, error) {
	var endpoint string
	err := c.call(ctx, callDiscovery, func(ctx context.Context) (err error) {
		endpoint, err = c.discover(ctx)
		return err
	})
	if err != nil {
		return grant{}, err
	}
	var fresh grant
	err = c.call(ctx, callToken, func(ctx context.Context) (err error) {
		fresh, err = c.ask(ctx, endpoint)
		return err
	})
	return fresh, err
}

func (c *issuerClient) call(ctx context.Context, call issuerCall, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	start := time.Now()
	err := do(limited)
	c.metrics.observeIssuer(call, time.Since(start), err)
	return err
}

// discover reads the address of tokens from the issuer's own document.
//
// Source: OpenID Connect Discovery 1.0 §4.
func (c *issuerClient) discover(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.issuer+"/.well-known/openid-configuration", http.NoBody)
	if err != nil {
		return "", c.nonsense("its URL cannot be used")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return "", c.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read or given up: nothing to lose
	if resp.StatusCode != http.StatusOK {
		return "", c.status(resp.StatusCode, "its .well-known/openid-configuration")
	}
	body := &boundedBody{body: resp.Body, left: maxDiscoveryBytes, limit: maxDiscoveryBytes}
	var document struct {
		TokenEndpoint string `json:"token_endpoint"`
	}
	err = json.NewDecoder(body).Decode(&document)
	switch {
	case body.broken != nil:
		return "", c.unreachable(body.broken)
	case err != nil:
		return "", c.nonsense("its .well-known/openid-configuration is no JSON")
	}
	drain(resp.Body)
	scheme, _, _ := strings.Cut(c.issuer, ":")
	endpoint, err := url.Parse(document.TokenEndpoint)
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "https" && endpoint.Scheme != scheme) {
		return "", c.nonsense("its .well-known/openid-configuration has no token_endpoint with " + scheme + "://")
	}
	return endpoint.String(), nil
}

// ask gets a token by the client credentials flow, with the client in the form as Pulsar's own clients send it.
func (c *issuerClient) ask(ctx context.Context, endpoint string) (grant, error) {
	config := clientcredentials.Config{
		ClientID: c.id, ClientSecret: c.secret, TokenURL: endpoint, AuthStyle: oauth2.AuthStyleInParams,
		Scopes: strings.Fields(c.scope), EndpointParams: url.Values{},
	}
	if c.audience != "" {
		config.EndpointParams.Set("audience", c.audience)
	}
	issued := c.now()
	answer, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, c.http))
	if err != nil {
		return grant{}, c.refusal(ctx, err)
	}
	token, err := cleanToken(answer.AccessToken)
	if err != nil {
		return grant{}, c.nonsense("its token is no good: " + err.Error())
	}
	return newGrant(token, issued, answer.Expiry), nil
}

// refusal turns an error of the library, whose own text repeats the whole answer, into one for users.
func (c *issuerClient) refusal(ctx context.Context, err error) error {
	var answered *oauth2.RetrieveError
	var failed *url.Error
	switch {
	case errors.As(err, &answered) && answered.ErrorCode != "":
		// before it may be cut
		words := strings.ReplaceAll(answered.ErrorCode+" "+answered.ErrorDescription, c.secret, "[secret]")
		return backlog.Because(backlog.ErrUnauthenticated, "OAuth2 issuer %s refuses the client: %q", c.issuer,
			backlog.Quote(words))
	case errors.As(err, &answered):
		return c.status(answered.Response.StatusCode, "the request for a token")
	case errors.As(err, &failed):
		return c.unreachable(err)
	case ctx.Err() != nil: // in the middle of the answer, where the library drops the cause
		return c.unreachable(ctx.Err())
	case strings.HasPrefix(err.Error(), "oauth2: cannot fetch token: "):
		return c.unreachable(io.ErrUnexpectedEOF)
	default:
		return c.nonsense("its answer has no token")
	}
}

// status is the error for an answer that is not what was asked for and does not say why.
func (c *issuerClient) status(status int, what string) error {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return backlog.Because(backlog.ErrUnauthenticated,
			"OAuth2 issuer %s answered %d to %s: are client_id and client_secret right?",
			c.issuer, status, what)
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return backlog.Because(backlog.ErrUnavailable, "OAuth2 issuer %s answered %d to %s: asked again soon", c.issuer,
			status, what)
	default:
		return backlog.Because(backlog.ErrProtocol, "OAuth2 issuer %s answered %d to %s: is it the issuer's URL?", c.issuer,
			status, what)
	}
}

func (c *issuerClient) nonsense(what string) error {
	return backlog.Because(backlog.ErrProtocol, "OAuth2 issuer %s: %s: is it the issuer's URL?", c.issuer, what)
}
