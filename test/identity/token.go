// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"time"
)

// keyID names the one key of a Signer.
const keyID = "one"

// Signer signs tokens with an RSA key (RS256).
type Signer struct{ key *rsa.PrivateKey }

// NewSigner makes a key.
func NewSigner() (*Signer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("making a key for tokens: %w", err)
	}
	return &Signer{key: key}, nil
}

// PublicKey is the verification key of tokens, as a broker's tokenPublicKey: a data: URL of its X.509 form.
func (s *Signer) PublicKey() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		return "", fmt.Errorf("encoding a public key: %w", err)
	}
	return "data:;base64," + base64.StdEncoding.EncodeToString(der), nil
}

// PrivateKey is the key in the form of "pulsar tokens": PKCS #8.
func (s *Signer) PrivateKey() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return der, nil
}

// Token signs a token for the role with the given lifetime, which may be negative.
func (s *Signer) Token(role string, life time.Duration) (string, error) {
	return s.Sign(map[string]any{"sub": role, "exp": time.Now().Add(life).Unix()})
}

// Sign signs a token with the claims.
//
// Source: RFC 7515 and 7519.
func (s *Signer) Sign(claims map[string]any) (string, error) {
	head, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": keyID})
	if err != nil {
		return "", fmt.Errorf("encoding a token: %w", err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("encoding a token: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// jwks is the public key as issuers publish it (RFC 7517).
func (s *Signer) jwks() map[string]any {
	exponent := new(big.Int).SetInt64(int64(s.key.E)).Bytes()
	return map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": keyID,
		"n": base64.RawURLEncoding.EncodeToString(s.key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(exponent),
	}}}
}
