// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

// Config configures the credentials and how requests with them are sent.
type Config struct {
	// Own are the program's own credentials.
	Own Own
	// CAFileFailed is called when Own.CAFile has become invalid, once for each reason; nil calls none. The last valid
	// certificates remain in use.
	CAFileFailed func(error)
	// Named returns the credentials of clusters; nil if no cluster names any.
	Named Source
	// AllowedIssuers are the URLs of OAuth2 issuers that credentials of users may call. The issuer of Own is always
	// allowed.
	AllowedIssuers []string
	// Transport makes the connections of all sessions with the same certificates, and those to an issuer; required.
	Transport func(*tls.Config) *http.Transport
	// Chain handles a request to a broker between the credentials and the connections; required.
	Chain func(connections http.RoundTripper) http.RoundTripper
	// IssuerTimeout bounds each of the two requests for a token; required.
	IssuerTimeout time.Duration
	// Observe is called after each request to an issuer; call is discovery or token. Required.
	Observe func(call string, took time.Duration, err error)
	// Explain returns why a connection failed, in words; required.
	Explain func(error) string
}

// Credentials authenticates requests. It is safe for concurrent use.
type Credentials struct {
	own   Own
	roots *File[string] // of the program's own credentials
	// source may be nil.
	source Source
	// issuers that may be called for tokens.
	issuers  map[string]bool
	sessions *sessions
}

// New returns Credentials, or an error that names the invalid key.
func New(config Config) (*Credentials, error) {
	mine, err := config.Own.params()
	if err != nil {
		return nil, err
	}
	c := &Credentials{
		own: config.Own, source: config.Named, issuers: map[string]bool{}, sessions: newSessions(config),
	}
	if c.roots, err = NewCAFile(config.Own.CAFile, config.CAFileFailed); err != nil {
		return nil, fmt.Errorf("caFile %q: %w", config.Own.CAFile, err)
	}
	for i, text := range config.AllowedIssuers {
		issuer, err := authparams.ParseIssuer(text)
		if err != nil {
			return nil, fmt.Errorf("allowedIssuers[%d] %w", i, err)
		}
		c.issuers[issuer] = true
	}
	if mine.Issuer != "" {
		c.issuers[mine.Issuer] = true
	}
	return c, nil
}

// Authenticate returns a Transport with the current credentials of the name; the empty name is for the program's own.
// It may read files, and call the Source and an issuer. Its errors are texts for users and contain no secret.
func (c *Credentials) Authenticate(ctx context.Context, access string) (*Transport, error) {
	m, err := c.resolve(ctx, access)
	if err != nil {
		return nil, err
	}
	s, err := c.sessions.open(m)
	if err != nil {
		return nil, err
	}
	s.connections.redial(c.sessions.now())
	shown := s.shown
	if s.tokens != nil {
		shown, err = s.tokens.authenticate(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &Transport{access: access, session: s, shown: shown}, nil
}

// Renew invalidates credentials that Pulsar refused, and returns the ones that replaced them; nil if there are none.
func (c *Credentials) Renew(ctx context.Context, refused *Transport) *Transport {
	if tokens := refused.session.tokens; tokens != nil {
		tokens.invalidate(refused.shown)
	}
	if refused.access != "" {
		c.source.Invalidate(refused.access)
	}
	fresh, err := c.Authenticate(ctx, refused.access)
	if err != nil { // the refusal is the better message, and the next call returns this error
		return nil
	}
	if fresh.session.material == refused.session.material && fresh.shown.secret == refused.shown.secret {
		return nil
	}
	return fresh
}

// AdministeredFor reports whether the program's administrator configured the named credentials for that URL.
func (c *Credentials) AdministeredFor(access string, u *url.URL) bool {
	urls, is := c.administered(access)
	if !is {
		return false
	}
	spelled, err := backlog.ParseAdminURL(u.Scheme + "://" + u.Host)
	return err == nil && slices.Contains(urls, spelled)
}

// Close closes the connections that are not in use.
func (c *Credentials) Close() { c.sessions.close() }

// Transport is an http.RoundTripper that sends one set of credentials to any host that it calls: its caller has to
// check redirects to other hosts.
type Transport struct {
	access  string
	session *session
	shown   authorization
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.ShowsCertificate() && req.URL.Scheme != "https" {
		return nil, backlog.Errorf(backlog.ErrUnsupported,
			"a client certificate cannot be shown to %s://%s: use the https port of the brokers", req.URL.Scheme, req.URL.Host)
	}
	authenticated := req.Clone(req.Context())
	t.shown.set(authenticated.Header)
	return t.session.chain.RoundTrip(authenticated)
}

// Handshake returns what a connection of the binary protocol sends in place of headers, and how it uses TLS.
func (t *Transport) Handshake() (method, secret string, config *tls.Config) {
	return t.shown.methodName(), t.shown.secret, t.session.connections.current().TLSClientConfig
}

// ShowsCertificate reports whether a client certificate authenticates.
func (t *Transport) ShowsCertificate() bool { return t.shown.method == authparams.TLS }

// Redact removes the credentials from a server's text.
func (t *Transport) Redact(text string) string { return t.shown.redact(text) }

// Refusal explains a 401 to these credentials, as the rest of a sentence about the broker, which answers it for all
// kinds of credentials. A token may show that it has expired.
func (t *Transport) Refusal(now time.Time) string {
	m := t.session.material
	switch m.Method {
	case authparams.None:
		if m.named {
			return "requires credentials and those that were named have none: name a Secret with a token"
		}
		return "requires credentials and none are configured: give the adapter a token"
	case authparams.Basic:
		return "does not accept the user and password: does the brokers' basicAuthConf have them?"
	case authparams.TLS:
		return "does not accept the client certificate: " +
			"is AuthenticationProviderTls among the brokers' authenticationProviders?"
	case authparams.OAuth2:
		return "does not accept the token of OAuth2 issuer " + m.Issuer +
			": do the brokers trust that issuer and the audience?"
	default:
		return tokenRefusal(m.Token.Content, now)
	}
}

const (
	// maxSessions bounds the memory for credentials of users: a session has about 1 KB beside its secrets.
	maxSessions = 5000
	// maxConnections bounds the sets of connections, which differ in their certificates: about 10 KB each.
	maxConnections = 1000
	// sessionIdle is the time after which an unused session is dropped, with its cached token. Its connections to brokers
	// and to an issuer end before that, as idle ones.
	sessionIdle = 10 * time.Minute
	// redialEvery bounds how long requests go to an earlier address of a host: a broker that its name was moved away from
	// may answer for good, and polls leave no connection idle for long enough to end.
	redialEvery = time.Minute
)

// connections are shared by sessions with the same certificates. Those in use end with their requests once redial has
// replaced the transport.
type connections struct {
	// mu guards transport, and since, which is when it became the current one.
	mu        sync.Mutex
	transport *http.Transport
	since     time.Time
}

func (c *connections) current() *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.transport
}

// RoundTrip implements http.RoundTripper.
func (c *connections) RoundTrip(req *http.Request) (*http.Response, error) {
	return c.current().RoundTrip(req)
}

// redial has the requests after redialEvery look up their hosts.
func (c *connections) redial(now time.Time) {
	c.mu.Lock()
	before, due := c.transport, now.Sub(c.since) >= redialEvery
	if due {
		c.transport, c.since = before.Clone(), now
	}
	c.mu.Unlock()
	if due {
		before.CloseIdleConnections()
	}
}

// session is one set of credentials. It shares its connections with all that have the same certificates.
type session struct {
	material    material
	connections *connections
	chain       http.RoundTripper
	shown       authorization // unless there are tokens
	tokens      *tokenSource  // nil without an issuer
}

func newSession(m material, connections *connections, config Config) (*session, error) {
	s := &session{
		material: m, connections: connections, chain: config.Chain(connections), shown: authorization{method: m.Method},
	}
	var err error
	switch m.Method {
	case authparams.Token:
		s.shown.secret = m.Token.Content
	case authparams.Basic:
		s.shown.secret = m.User + ":" + m.Password
	case authparams.OAuth2:
		s.tokens, err = newTokenSource(m, config)
	case authparams.None, authparams.TLS:
	}
	return s, err
}

// sessions keeps one session for each set of credentials, whatever its names.
type sessions struct {
	config Config
	now    func() time.Time

	// mu makes a look-up and what it adds one step; the caches have locks of their own.
	mu          sync.Mutex
	byMaterial  *backlog.Cache[material, *session]
	connections *backlog.Cache[material, *connections] // by their certificates
}

func newSessions(config Config) *sessions {
	return &sessions{
		config: config, now: time.Now,
		byMaterial:  backlog.NewCache[material, *session](sessionIdle, maxSessions),
		connections: backlog.NewCache[material, *connections](sessionIdle, maxConnections),
	}
}

// open returns the session of the credentials. It sends nothing.
func (s *sessions) open(m material) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, known := s.byMaterial.Get(m, s.now())
	if !known {
		connections, err := s.connectionsFor(m.certificates())
		if err != nil {
			return nil, err
		}
		if found, err = newSession(m, connections, s.config); err != nil {
			return nil, err
		}
	}
	s.byMaterial.Put(m, found, s.now())
	s.connections.Put(m.certificates(), found.connections, s.now())
	return found, nil
}

// connectionsFor returns the connections for certificates: tokens, users and passwords are headers of each request.
func (s *sessions) connectionsFor(certificates material) (*connections, error) {
	if shared, known := s.connections.Get(certificates, s.now()); known {
		return shared, nil
	}
	tlsConfig, err := certificates.tlsConfig()
	if err != nil {
		return nil, err
	}
	return &connections{transport: s.config.Transport(tlsConfig), since: s.now()}, nil
}

func (s *sessions) close() {
	for _, open := range s.byMaterial.Values() {
		if open.tokens != nil {
			open.tokens.issuer.client.CloseIdleConnections()
		}
	}
	for _, connections := range s.connections.Values() {
		connections.current().CloseIdleConnections()
	}
}
