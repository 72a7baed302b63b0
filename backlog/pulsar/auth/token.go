// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

const (
	// earlyRefresh is how long before its end a token is replaced, or a fifth of its life if that is shorter: a broker's
	// clock may be ahead, and an issuer may be unavailable for a while.
	earlyRefresh = time.Minute
	// assumedLife is the life of a token without expires_in (RFC 6749 only recommends it).
	assumedLife = 5 * time.Minute
	// issuerPause is the time between two requests to an issuer that failed, and before a token that a broker refuses is
	// replaced: thousands of topics must not each send a request to an issuer.
	issuerPause = 10 * time.Second
	// maxPause is up to where the pause before a replacement doubles while replacements are refused too: another token
	// does not help then, and issuers limit or charge for tokens.
	maxPause = 10 * time.Minute
)

type token struct {
	text                  string
	issued, refresh, ends time.Time
	// refused is true if a broker has refused the token. It is replaced after its pause, and used until that succeeds,
	// since other clusters may accept it.
	refused bool
	pause   time.Duration
}

func newToken(text string, issued, ends time.Time) token {
	if !ends.After(issued) { // missing or invalid
		ends = issued.Add(assumedLife)
	}
	life := ends.Sub(issued)
	return token{text: text, issued: issued, refresh: ends.Add(-min(earlyRefresh, life/5)), ends: ends}
}

func (t token) authorization() authorization { return authorization{authparams.OAuth2, t.text} }

// tokenSource caches the token of an issuer, and requests the next one as part of a request that needs it, one at a
// time.
//
// oauth2.ReuseTokenSource and singleflight do not do this: the first waits without a context and fails while a valid
// token is held, and with both all requests wait while a token is replaced early.
type tokenSource struct {
	issuer *issuer
	now    func() time.Time
	// turn holds one element while the issuer is called.
	turn chan struct{}

	mu sync.Mutex
	// held, failure and failedAt are guarded by mu.
	held     token
	failure  error
	failedAt time.Time
}

func newTokenSource(m material, config Config) (*tokenSource, error) {
	i, err := newIssuer(m, config)
	if err != nil {
		return nil, err
	}
	return &tokenSource{issuer: i, now: time.Now, turn: make(chan struct{}, 1)}, nil
}

// authenticate returns a valid token. While one is held, only the request that replaces it early waits for the issuer.
func (s *tokenSource) authenticate(ctx context.Context) (authorization, error) {
	held, due, err := s.current()
	if !due {
		return held.authorization(), err
	}
	if err := s.takeTurn(ctx, held); err != nil {
		if held.text != "" {
			return held.authorization(), nil
		}
		return authorization{}, s.issuer.unreachable(err)
	}
	defer func() { <-s.turn }()
	if held, due, err = s.current(); !due { // another request has replaced it meanwhile
		return held.authorization(), err
	}
	fresh, err := s.issuer.request(ctx, s.now())
	if err == nil {
		s.remember(fresh)
		return fresh.authorization(), nil
	}
	if ctx.Err() == nil { // else the error is not the issuer's
		s.fail(err)
	}
	if held.text != "" {
		return held.authorization(), nil
	}
	return authorization{}, err
}

var errTurnTaken = errors.New("another request calls the issuer")

// takeTurn waits for the turn to call the issuer if no token is held, or one that a broker refused.
func (s *tokenSource) takeTurn(ctx context.Context, held token) error {
	if held.text != "" && !held.refused {
		select {
		case s.turn <- struct{}{}:
			return nil
		default:
			return errTurnTaken
		}
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// current returns the held token, without a text if it has expired, and whether to call the issuer now. The error is
// that of the last attempt, if there is no token and it is too early for another one.
func (s *tokenSource) current() (held token, due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Before(s.held.ends) {
		held = s.held
	}
	switch {
	case held.text != "" && now.Before(held.refresh):
		return held, false, nil
	case s.failure == nil || now.Sub(s.failedAt) >= issuerPause:
		return held, true, nil
	case held.text != "":
		return held, false, nil
	default:
		return held, false, s.failure
	}
}

func (s *tokenSource) remember(fresh token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh.pause = issuerPause
	if s.held.refused {
		fresh.pause = min(2*s.held.pause, maxPause)
	}
	s.held, s.failure = fresh, nil
}

func (s *tokenSource) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.failedAt = err, s.now()
}

// invalidate requests the replacement of a token that a broker refuses, as soon as it is so old that another may help.
func (s *tokenSource) invalidate(refused authorization) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.text != refused.secret {
		return
	}
	s.held.refused = true
	if early := s.held.issued.Add(s.held.pause); early.Before(s.held.refresh) {
		s.held.refresh = early
	}
}

// The two requests for a token, as metrics name them.
const (
	callDiscovery = "discovery"
	callToken     = "token"
)

// maxDiscoveryBytes is more than any issuer's document, which has about 5 KB. The library limits the answer with a
// token to 1 MiB.
const maxDiscoveryBytes = 256 << 10

// keyFile is the file that issuers create for a client. Other keys, such as client_email and issuer_url, are not
// needed.
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

// issuer is an OAuth2 issuer and a client that uses client credentials.
type issuer struct {
	authparams.Params

	id, secret string
	client     *http.Client
	config     Config
}

// newIssuer uses separate connections: an issuer never gets the credentials for brokers, and its certificate is always
// checked.
func newIssuer(m material, config Config) (*issuer, error) {
	k, err := decodeKeyFile(m.Client.Content)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := m.issuerTLSConfig()
	if err != nil {
		return nil, err
	}
	return &issuer{
		Params: m.Params, id: k.ClientID, secret: k.ClientSecret, config: config,
		client: &http.Client{
			Transport: config.Transport(tlsConfig),
			// The secret must not reach another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func (i *issuer) request(ctx context.Context, now time.Time) (token, error) {
	var endpoint string
	err := i.call(ctx, callDiscovery, func(ctx context.Context) (err error) {
		endpoint, err = i.discover(ctx)
		return err
	})
	if err != nil {
		return token{}, err
	}
	var fresh token
	err = i.call(ctx, callToken, func(ctx context.Context) (err error) {
		fresh, err = i.requestToken(ctx, endpoint, now)
		return err
	})
	return fresh, err
}

func (i *issuer) call(ctx context.Context, call string, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, i.config.IssuerTimeout)
	defer cancel()
	start := time.Now()
	err := do(limited)
	i.config.Observe(call, time.Since(start), err)
	return err
}

// discover reads the token endpoint from the issuer's document.
//
// Source: OpenID Connect Discovery 1.0 §4.
func (i *issuer) discover(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.Issuer+"/.well-known/openid-configuration", http.NoBody)
	if err != nil {
		return "", i.malformed("its URL cannot be used")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := i.client.Do(req)
	if err != nil {
		return "", i.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read or abandoned
	if resp.StatusCode != http.StatusOK {
		return "", i.status(resp.StatusCode, "its .well-known/openid-configuration")
	}
	body := &backlog.Body{ReadCloser: resp.Body}
	var document struct {
		TokenEndpoint string `json:"token_endpoint"`
	}
	err = json.NewDecoder(http.MaxBytesReader(nil, body, maxDiscoveryBytes)).Decode(&document)
	switch {
	case body.Broken != nil:
		return "", i.unreachable(body.Broken)
	case err != nil:
		return "", i.malformed("its .well-known/openid-configuration is no JSON")
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDiscoveryBytes) // an error only costs the connection
	scheme, _, _ := strings.Cut(i.Issuer, ":")
	endpoint, err := url.Parse(document.TokenEndpoint)
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "https" && endpoint.Scheme != scheme) {
		return "", i.malformed("its .well-known/openid-configuration has no token_endpoint with " + scheme + "://")
	}
	return endpoint.String(), nil
}

// requestToken requests a token by the client credentials flow. The client is in the form, as in Pulsar's own clients.
func (i *issuer) requestToken(ctx context.Context, endpoint string, issued time.Time) (token, error) {
	config := clientcredentials.Config{
		ClientID: i.id, ClientSecret: i.secret, TokenURL: endpoint, AuthStyle: oauth2.AuthStyleInParams,
		Scopes: strings.Fields(i.Scope), EndpointParams: url.Values{},
	}
	if i.Audience != "" {
		config.EndpointParams.Set("audience", i.Audience)
	}
	answer, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, i.client))
	if err != nil {
		return token{}, i.refusal(ctx, err)
	}
	text, err := authparams.ParseToken(answer.AccessToken)
	if err != nil {
		return token{}, i.malformed("its token is no good: " + err.Error())
	}
	return newToken(text, issued, answer.Expiry), nil
}

// refusal converts an error of the library, which repeats the whole answer, to one for users.
func (i *issuer) refusal(ctx context.Context, err error) error {
	var answered *oauth2.RetrieveError
	var failed *url.Error
	switch {
	case errors.As(err, &answered) && answered.ErrorCode != "":
		words := answered.ErrorCode + " " + answered.ErrorDescription
		words = strings.ReplaceAll(words, i.secret, "[secret]") // before it may be cut
		return backlog.Errorf(backlog.ErrUnauthenticated, "OAuth2 issuer %s refuses the client: %q", i.Issuer,
			backlog.Quote(words))
	case errors.As(err, &answered):
		return i.status(answered.Response.StatusCode, "the request for a token")
	case errors.As(err, &failed):
		return i.unreachable(err)
	case ctx.Err() != nil: // in the middle of the answer, where the library drops the cause
		return i.unreachable(ctx.Err())
	case strings.HasPrefix(err.Error(), "oauth2: cannot fetch token: "):
		return i.unreachable(io.ErrUnexpectedEOF)
	default:
		return i.malformed("its answer has no token")
	}
}

// status is the error for an unexpected status without a reason.
func (i *issuer) status(status int, what string) error {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return backlog.Errorf(backlog.ErrUnauthenticated,
			"OAuth2 issuer %s answered %d to %s: are client_id and client_secret right?", i.Issuer, status, what)
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return backlog.Errorf(backlog.ErrUnavailable,
			"OAuth2 issuer %s answered %d to %s: retried soon", i.Issuer, status, what)
	default:
		return backlog.Errorf(backlog.ErrProtocol,
			"OAuth2 issuer %s answered %d to %s: is it the issuer's URL?", i.Issuer, status, what)
	}
}

func (i *issuer) malformed(what string) error {
	return backlog.Errorf(backlog.ErrProtocol, "OAuth2 issuer %s: %s: is it the issuer's URL?", i.Issuer, what)
}

func (i *issuer) unreachable(cause error) error {
	return backlog.Errorf(backlog.ErrUnreachable, "OAuth2 issuer %s: %s", i.Issuer, i.config.Explain(cause)).
		Because(cause)
}
