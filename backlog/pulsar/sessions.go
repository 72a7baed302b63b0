// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http"
	"sync"
	"time"
)

const (
	// maxSessions bounds the memory that credentials of users can take: a session without connections has about 10 KB.
	maxSessions = 1000
	// sessionIdle is the time after which a session that nobody uses is dropped, with what it remembers.
	sessionIdle = 10 * time.Minute
	// sessionSweep is the time between two looks for such.
	sessionSweep = time.Minute
)

// session is one set of credentials with the connections that were made under it.
type session struct {
	material material
	http     *http.Client
	auth     authenticator
}

func (s *session) close() {
	s.http.CloseIdleConnections()
	if issuer, ok := s.auth.(*issuerClient); ok {
		issuer.http.CloseIdleConnections()
	}
}

// newSession takes keys and certificates apart.
func newSession(m material, config Config, counters *metrics) (*session, error) {
	tlsConfig, err := m.tlsConfig()
	if err != nil {
		return nil, err
	}
	s := &session{material: m, http: newHTTPClient(newTransport(tlsConfig, config))}
	switch m.method {
	case methodToken:
		s.auth = constant(bearer(methodToken, m.token.content))
	case methodBasic:
		s.auth = constant(basic(m.user, m.password))
	case methodOAuth2:
		issuerTLS, err := m.issuerTLSConfig()
		if err != nil {
			return nil, err
		}
		s.auth, err = newIssuerClient(m.params, newTransport(issuerTLS, config), counters, config.RequestTimeout)
		if err != nil {
			return nil, err
		}
	default:
		s.auth = constant{method: m.method}
	}
	return s, nil
}

// sessions keeps one session for each set of credentials, whoever names it.
type sessions struct {
	// build makes a session; it calls nobody.
	build func(material) (*session, error)
	now   func() time.Time

	mu sync.Mutex
	// byMaterial, byAccess and swept are guarded by mu. The times are those of the last use.
	byMaterial map[material]*usedSession
	byAccess   map[string]*usedName
	swept      time.Time
}

type usedSession struct {
	*session

	used time.Time
}

// usedName is which credentials a name stood for last.
type usedName struct {
	session *usedSession
	used    time.Time
}

func newSessions(build func(material) (*session, error)) *sessions {
	return &sessions{
		build: build, now: time.Now, byMaterial: map[material]*usedSession{},
		byAccess: map[string]*usedName{},
	}
}

// open returns the session for what the name stands for now. When that has changed, the session that nobody names any
// more is closed.
func (s *sessions) open(access string, m material) (*session, error) {
	found, closing := s.lookup(access, m, nil)
	if found == nil {
		built, err := s.build(m)
		if err != nil {
			return nil, err
		}
		found, closing = s.lookup(access, m, built)
	}
	for _, old := range closing {
		old.close()
	}
	return found, nil
}

// lookup finds the session, or keeps the one that was built. It also returns sessions to be closed.
func (s *sessions) lookup(access string, m material, built *session) (found *session, closing []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	entry := s.byMaterial[m]
	switch {
	case entry != nil:
	case built == nil:
		return nil, nil
	default:
		entry = &usedSession{session: built}
		closing = s.makeRoom()
		s.byMaterial[m] = entry
	}
	entry.used = now
	if replaced := s.assign(access, entry, now); replaced != nil {
		closing = append(closing, replaced)
	}
	return entry.session, append(closing, s.sweep(now)...)
}

// assign returns the session that the name stood for before, if no name is left for it.
func (s *sessions) assign(access string, entry *usedSession, now time.Time) *session {
	name := s.byAccess[access]
	if name == nil {
		s.byAccess[access] = &usedName{session: entry, used: now}
		return nil
	}
	before := name.session
	name.session, name.used = entry, now
	if before == entry {
		return nil
	}
	for _, other := range s.byAccess {
		if other.session == before {
			return nil
		}
	}
	delete(s.byMaterial, before.material)
	return before.session
}

// makeRoom drops the session that was not used for longest when there are too many.
func (s *sessions) makeRoom() []*session {
	if len(s.byMaterial) < maxSessions {
		return nil
	}
	var oldest *usedSession
	for _, entry := range s.byMaterial {
		if oldest == nil || entry.used.Before(oldest.used) {
			oldest = entry
		}
	}
	return []*session{s.drop(oldest)}
}

// sweep drops, once in a while, what nobody has used.
func (s *sessions) sweep(now time.Time) (dropped []*session) {
	if now.Sub(s.swept) < sessionSweep {
		return nil
	}
	s.swept = now
	for access, name := range s.byAccess {
		if now.Sub(name.used) >= sessionIdle {
			delete(s.byAccess, access)
		}
	}
	for _, entry := range s.byMaterial {
		if now.Sub(entry.used) >= sessionIdle {
			dropped = append(dropped, s.drop(entry))
		}
	}
	return dropped
}

func (s *sessions) drop(entry *usedSession) *session {
	delete(s.byMaterial, entry.material)
	for access, name := range s.byAccess {
		if name.session == entry {
			delete(s.byAccess, access)
		}
	}
	return entry.session
}

// close closes the connections that are not in use.
func (s *sessions) close() {
	s.mu.Lock()
	open := make([]*session, 0, len(s.byMaterial))
	for _, entry := range s.byMaterial {
		open = append(open, entry.session)
	}
	s.mu.Unlock()
	for _, each := range open {
		each.close()
	}
}
