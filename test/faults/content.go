// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// ask returns the body of the correct response.
func ask(r *http.Request, broker http.Handler) []byte {
	truth := httptest.NewRecorder()
	broker.ServeHTTP(truth, r)
	return truth.Body.Bytes()
}

// Edits edits each topic or partition of the correct response.
func Edits(edit func(topic object)) Fault {
	return Fault{On: Stats, Answer: func(w http.ResponseWriter, r *http.Request, broker http.Handler) {
		answer := decoded(ask(r, broker))
		for _, topic := range topics(answer) {
			edit(topic)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // a client that went away
	}}
}

// EditsSubscriptions is Edits for each subscription.
func EditsSubscriptions(edit func(subscription object)) Fault {
	return Edits(func(topic object) { eachSubscription(topic, edit) })
}

// Counters edits the counters since the load of the topic.
func Counters(edit func(value int64) int64) Fault {
	return Edits(func(topic object) {
		change(topic, "msgInCounter", edit)
		eachSubscription(topic, func(subscription object) { change(subscription, "msgOutCounter", edit) })
	})
}

// Constant makes a number constant.
func Constant(number int64) func(int64) int64 { return func(int64) int64 { return number } }

// Plus adds to a number.
func Plus(number int64) func(int64) int64 { return func(value int64) int64 { return value + number } }

// Freezes repeats the first response to each kind of request for statistics without the age, as a partial cache in
// between does.
func Freezes() Fault {
	frozen := map[string][]byte{} // requests of one topic come one after the other
	return Fault{
		On: func(r *http.Request) bool { return Stats(r) && r.URL.Query().Get("getEarliestTimeInBacklog") != "true" },
		Answer: func(w http.ResponseWriter, r *http.Request, broker http.Handler) {
			key := r.URL.RequestURI()
			if frozen[key] == nil {
				frozen[key] = ask(r, broker)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(frozen[key])
		},
	}
}

// Crowds adds that many consumers to each subscription.
func Crowds(count int) Fault {
	return stretches(func(topic object) {
		eachSubscription(topic, func(subscription object) { subscription["consumers"] = []any{mark} })
	}, `"`+mark+`"`, count, `{"consumerName":"crowd-%07d"}`)
}

// mark is where a response is stretched.
const mark = "@here@"

// stretches replaces the first mark, which the edit puts into the response, by that many pieces.
func stretches(edit func(topic object), marked string, count int, piece string) Fault {
	var stretch bytes.Buffer
	for i := range count {
		if i > 0 {
			stretch.WriteByte(',')
		}
		fmt.Fprintf(&stretch, piece, i)
	}
	return Fault{On: Stats, Answer: func(w http.ResponseWriter, r *http.Request, broker http.Handler) {
		answer := decoded(ask(r, broker))
		for _, topic := range topics(answer) {
			edit(topic)
		}
		body, err := json.Marshal(answer)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		head, tail, _ := bytes.Cut(body, []byte(marked))
		w.Header().Set("Content-Type", "application/json")
		for _, part := range [][]byte{head, stretch.Bytes(), bytes.ReplaceAll(tail, []byte(`"`+mark+`"`), nil)} {
			if _, err := w.Write(part); err != nil {
				return // the client has disconnected
			}
		}
	}}
}

// Partitions responds with another number of partitions, in the metadata and in the statistics.
func Partitions(count int) Fault {
	return Fault{
		On: func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/partitions") || strings.HasSuffix(r.URL.Path, "/partitioned-stats")
		},
		Answer: func(w http.ResponseWriter, r *http.Request, broker http.Handler) {
			answer := decoded(ask(r, broker))
			metadata := answer
			if all, ok := answer["partitions"].(object); ok {
				metadata, _ = answer["metadata"].(object)
				for name := range all {
					_, index, _ := strings.Cut(name, "-partition-")
					if index >= fmt.Sprint(count) { // of one digit
						delete(all, name)
					}
				}
			}
			metadata["partitions"] = count
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer) // a client that went away
		},
	}
}

// decoded is nil for anything but an object, which is not edited.
func decoded(body []byte) object {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var answer object
	if decoder.Decode(&answer) != nil {
		return object{}
	}
	return answer
}

// topics are the partitions of a response, or its one topic.
func topics(answer object) []object {
	all, partitioned := answer["partitions"].(object)
	if !partitioned {
		return []object{answer}
	}
	var each []object
	for _, one := range all {
		if topic, ok := one.(object); ok {
			each = append(each, topic)
		}
	}
	return each
}

func eachSubscription(topic object, edit func(subscription object)) {
	all, _ := topic["subscriptions"].(object)
	for _, one := range all {
		if subscription, ok := one.(object); ok {
			edit(subscription)
		}
	}
}

// change edits a number.
func change(object object, key string, edit func(value int64) int64) {
	number, ok := object[key].(json.Number)
	if !ok {
		return
	}
	if value, err := number.Int64(); err == nil {
		object[key] = edit(value)
	}
}
