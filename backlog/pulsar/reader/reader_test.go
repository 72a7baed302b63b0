// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	orders  = "persistent://public/default/orders"
	returns = "persistent://public/default/returns-partition-1"
	timeout = 3 * time.Second
)

func brokerWith(access string) Broker {
	return Broker{
		Host: "broker:6650", Access: access, Method: "token", Secret: "secret of " + access,
	}
}

// reads starts a reader, and returns its end.
func reads(ctx context.Context, r *Readers, broker Broker, topic string) <-chan error {
	ended := make(chan error, 1)
	var group errgroup.Group
	group.Go(func() error {
		_, err := r.Read(ctx, broker, topic, func() {})
		ended <- err
		return nil
	})
	synctest.Wait()
	return ended
}

func TestAReaderEndsWithTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeBroker(t)
		r := New(f.dial, timeout)
		ended := reads(t.Context(), r, brokerWith("shop"), orders)
		require.Equal(t, 1, r.Subscribed())
		require.Equal(t, []string{"broker:6650"}, f.dials)
		hello := f.of(connect)[0]
		require.Equal(t, []string{"token", "secret of shop"}, []string{hello.texts[5], hello.texts[3]})
		asked := f.of(subscribe)[0]
		require.Equal(t, orders, asked.texts[1])
		require.True(t, strings.HasPrefix(asked.texts[2], SubscriptionPrefix), asked.texts[2])
		require.Contains(t, asked.numbers, kind(8))
		require.Zero(t, asked.numbers[8], "it is not durable")
		require.Contains(t, asked.numbers, kind(15))
		require.Zero(t, asked.numbers[15], "the topic is not created")
		require.Len(t, f.of(flow), 1)
		require.Equal(t, uint64(1), f.of(flow)[0].numbers[2], "one message, with whatever is in its batch")

		f.publish(orders, 5<<20)
		require.NoError(t, <-ended)
		synctest.Wait()
		require.Empty(t, f.subscribed)
		require.Zero(t, f.open(), "the connection ends with its last reader")
		r.Close()
	})
}

func TestAReaderTellsAMessageFromTheEndOfItsSubscription(t *testing.T) {
	for name, test := range map[string]struct {
		ends func(f *fakeBroker)
		seen bool
	}{
		"a message":                 {func(f *fakeBroker) { f.publish(orders, 10) }, true},
		"closed by the broker":      {func(f *fakeBroker) { f.tell(orders, closeConsumer) }, false},
		"the end of the connection": {(*fakeBroker).disconnect, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeBroker(t)
				r := New(f.dial, timeout)
				var seen bool
				var err error
				var group errgroup.Group
				group.Go(func() error {
					seen, err = r.Read(t.Context(), brokerWith("shop"), orders, func() {})
					return nil
				})
				synctest.Wait()
				test.ends(f)
				require.NoError(t, group.Wait())
				require.NoError(t, err)
				require.Equal(t, test.seen, seen)
				r.Close()
			})
		})
	}
}

func TestReadersShareAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeBroker(t)
		r := New(f.dial, timeout)
		one := reads(t.Context(), r, brokerWith("shop"), orders)
		ctx, stop := context.WithCancel(t.Context())
		other := reads(ctx, r, brokerWith("shop"), returns)
		require.Len(t, f.dials, 1)
		stranger := reads(t.Context(), r, brokerWith("media"), orders)
		require.Len(t, f.dials, 2, "never with the credentials of others")

		stop()
		require.ErrorIs(t, <-other, context.Canceled)
		synctest.Wait()
		require.NotContains(t, f.subscribed, returns)
		require.Equal(t, 2, f.open())

		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 2, f.open(), "a broker that answers pings is not left")
		f.disconnect()
		require.NoError(t, <-one)
		require.NoError(t, <-stranger)
		require.Zero(t, r.Subscribed())
		r.Close()
		synctest.Wait() // the broker sees the end after the reader
		require.Zero(t, f.open())
	})
}

func TestAReaderEndsWhenItsBrokerCannotPush(t *testing.T) {
	tests := map[string]func(f *fakeBroker){
		"the topic moves":              func(f *fakeBroker) { f.tell(orders, closeConsumer) },
		"the broker ends":              func(f *fakeBroker) { f.disconnect() },
		"the token expires":            func(f *fakeBroker) { f.tell(orders, authChallenge) },
		"the broker answers no longer": func(f *fakeBroker) { f.set(func() { f.silent = true }); time.Sleep(2 * silence) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeBroker(t)
				r := New(f.dial, timeout)
				ended := reads(t.Context(), r, brokerWith("shop"), orders)
				change(f)
				require.NoError(t, <-ended, "what was published meanwhile is the caller's to look for")

				f.set(func() { f.silent = false })
				ended = reads(t.Context(), r, brokerWith("shop"), orders)
				require.Equal(t, 1, r.Subscribed(), "again, with a new connection where it is needed")
				f.publish(orders, 10)
				require.NoError(t, <-ended)
				r.Close()
			})
		})
	}
}

func TestAReaderSaysWhyItCannotRead(t *testing.T) {
	refuse := func(k kind, code uint64) func(f *fakeBroker) { return func(f *fakeBroker) { f.refusals[k] = code } }
	tests := map[string]struct {
		change func(f *fakeBroker)
		reason error
		text   string
	}{
		"wrong credentials": {
			refuse(connect, authenticationError), backlog.ErrUnauthenticated,
			`credentials refused: broker:6650: the broker says "it says why": correct the credentials`,
		},
		"no right": {
			refuse(subscribe, authorizationError), backlog.ErrForbidden,
			"permission missing: " + orders + `: the broker says "it says why": grant consume on namespace public/default ` +
				"to the role of the credentials",
		},
		"no topic": {
			refuse(subscribe, topicNotFound), backlog.ErrTopicNotFound,
			"topic not found: " + orders + `: the broker says "it says why"`,
		},
		"too many consumers": {
			refuse(subscribe, 5), backlog.ErrUnavailable,
			"unavailable: " + orders + `: the broker says "it says why"`,
		},
		"no answer": {
			func(f *fakeBroker) { f.silent = true }, backlog.ErrUnreachable,
			"unreachable: broker:6650: no answer within 3s",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeBroker(t)
				test.change(f)
				r := New(f.dial, timeout)
				_, err := r.Read(t.Context(), brokerWith("shop"), orders, func() { t.Error("it does not read") })
				require.ErrorIs(t, err, test.reason)
				require.EqualError(t, err, test.text)
				r.Close()
				synctest.Wait()
				require.Zero(t, f.open())
			})
		})
	}
}

func TestAReaderWithoutABrokerIsUnreachable(t *testing.T) {
	refused := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network here") }
	r := New(refused, timeout)
	_, err := r.Read(t.Context(), brokerWith("shop"), orders, func() {})
	require.EqualError(t, err, "unreachable: broker:6650: no network here")
	r.Close()
}

// FuzzDecode: whatever a broker sends, decoding ends with a command or an error.
func FuzzDecode(f *testing.F) {
	for _, k := range []kind{message, success, failure, closeConsumer, ping} {
		f.Add(frame(k, body{}.number(1, 7).number(2, 4).string(3, "why"))[headerBytes:])
	}
	f.Fuzz(func(t *testing.T, base []byte) {
		got, err := decode(base)
		if err != nil {
			require.Zero(t, got)
			require.ErrorIs(t, err, backlog.ErrProtocol)
		}
	})
}
