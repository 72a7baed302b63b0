// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Stats selects requests for the state of a topic.
func Stats(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/stats") || strings.HasSuffix(r.URL.Path, "/partitioned-stats")
}

// Everything selects all requests.
func Everything(*http.Request) bool { return true }

// Hangs responds when resumed is closed, or never if it is nil.
func Hangs(resumed <-chan struct{}) Fault {
	return Fault{On: Everything, Answer: func(w http.ResponseWriter, r *http.Request, broker http.Handler) {
		select {
		case <-resumed:
			broker.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}}
}

// Delays responds correctly and late.
func Delays(length time.Duration) Fault {
	return Fault{On: Everything, Answer: func(w http.ResponseWriter, r *http.Request, broker http.Handler) {
		select {
		case <-time.After(length):
			broker.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}}
}

// Cuts closes the connection within the response.
func Cuts() Fault {
	return Fault{On: Stats, Answer: func(w http.ResponseWriter, r *http.Request, broker http.Handler) {
		truth := ask(r, broker)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(truth)))
		_, _ = w.Write(truth[:len(truth)/2])
		panic(http.ErrAbortHandler)
	}}
}

// Says responds with a status, a content type and a body.
func Says(status int, contentType, body string) Fault {
	return Fault{On: Everything, Answer: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}}
}

// Refuses responds with an error in Pulsar's JSON.
func Refuses(status int, reason string) Fault {
	return Says(status, "application/json", `{"reason":"`+reason+`"}`)
}

// Redirects to another URL, with the path of the request.
func Redirects(base string) Fault {
	return Fault{On: Everything, Answer: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Location", base+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	}}
}

// bombBytes is the unpacked size of a bomb.
const bombBytes = 400 << 20

// Bomb is a small response that unpacks to a huge one.
func Bomb() Fault {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = io.WriteString(zip, `{"bomb":[0`)
	zeros := append(bytes.Repeat([]byte(" "), 64<<10), ",0"...) // longer runs are refused by themselves
	for range bombBytes / len(zeros) {
		_, _ = zip.Write(zeros) // to memory
	}
	_ = zip.Close()
	return Fault{On: Stats, Answer: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}}
}
