// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	in1 = "persistent://public/default/in-1"
	in2 = "persistent://public/default/in-2"
)

func namespace() backlog.Namespace {
	return backlog.Namespace{Cluster: cluster(), Name: "public/default"}
}

// matching is a subscription of topics by patterns, and of others by name.
func matching(t testing.TB, pattern string, topics ...string) backlog.Subscription {
	t.Helper()
	parsed, err := backlog.ParsePattern(pattern)
	require.NoError(t, err)
	return backlog.NewSubscription(cluster(), function, topics...).WithPatterns(parsed)
}

func TestReadOfAPatternExplainsAnUnknownReading(t *testing.T) {
	good := func(entries int64) backlog.TopicSample {
		return answer{at: 1, published: 10, entries: 10, backlogEntries: entries}.sample()
	}
	without := answer{at: 1, noSubscription: true}.sample()
	gone := fmt.Errorf("%w: deleted", backlog.ErrTopicNotFound)
	list := func(s *backlog.Store, topics ...string) { backlog.List(s, namespace(), topics, start()) }
	tests := map[string]struct {
		prepare func(*backlog.Store)
		named   []string
		after   time.Duration
		want    error
		text    string
		ready   float64
		// missing is why a topic or the listing is unknown while others are known.
		missing error
	}{
		"the namespace was not listed yet": {
			prepare: func(*backlog.Store) {}, want: backlog.ErrNoData, text: "first listing of namespace public/default",
		},
		"the first listing failed": {
			prepare: func(s *backlog.Store) { backlog.FailListing(s, namespace(), backlog.ErrForbidden) },
			want:    backlog.ErrForbidden,
		},
		"a later listing failed, and the one before is young": {
			prepare: func(s *backlog.Store) {
				list(s, in1)
				s.Record(topic(in1), good(5))
				backlog.FailListing(s, namespace(), backlog.ErrUnreachable)
			},
			after: 59 * time.Second, ready: 5,
		},
		"the last good listing is too old": {
			prepare: func(s *backlog.Store) {
				list(s, in1)
				backlog.FailListing(s, namespace(), backlog.ErrUnreachable)
				s.Record(topic(in1), answer{at: 90, published: 3, entries: 3, backlogEntries: 3}.sample())
			},
			after: 91 * time.Second, ready: 3, missing: backlog.ErrStale,
			text: "listing the topics of namespace public/default: stale: no good answer since",
		},
		"listings may be older than answers": {
			prepare: func(s *backlog.Store) {
				list(s, in1)
				s.Record(topic(in1), answer{at: 89, published: 3, entries: 3, backlogEntries: 3}.sample())
			},
			after: 90 * time.Second, ready: 3,
		},
		"pulsar reports that the namespace does not exist": {
			prepare: func(s *backlog.Store) {
				list(s, in1)
				s.Record(topic(in1), good(5))
				backlog.FailListing(s, namespace(), gone)
			},
			ready: 5, missing: backlog.ErrTopicNotFound,
		},
		"pulsar reports that namespace and topics do not exist": {
			prepare: func(s *backlog.Store) {
				list(s, in1)
				s.Record(topic(in1), good(5))
				backlog.FailListing(s, namespace(), gone)
				s.Fail(topic(in1), gone)
			},
			want: backlog.ErrTopicNotFound, text: "deleted",
		},
		"no topic matches": {
			prepare: func(s *backlog.Store) { list(s, orders) }, want: backlog.ErrTopicNotFound,
			text: "no topic of the namespace matches persistent://public/default/in-.*",
		},
		"half of the matched topics were not answered yet": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), good(5))
			},
			want: backlog.ErrNoData, text: in2,
		},
		"a matched topic has no answer yet": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2, in2+"-2")
				s.Record(topic(in1), good(5))
				s.Record(topic(in2), good(2))
			},
			ready: 7, missing: backlog.ErrNoData, text: in2 + "-2",
		},
		"a matched topic cannot be read": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), good(5))
				s.Fail(topic(in2), backlog.ErrUnavailable)
			},
			ready: 5, missing: backlog.ErrUnavailable, text: in2,
		},
		"matched topics are summed": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), good(5))
				s.Record(topic(in2), good(2))
			},
			ready: 7,
		},
		"a topic that is named and matched counts once": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), good(5))
				s.Record(topic(in2), good(2))
			},
			named: []string{in1}, ready: 7,
		},
		"a named topic counts without a match": {
			prepare: func(s *backlog.Store) {
				list(s)
				s.Record(topic(orders), good(4))
			},
			named: []string{orders}, ready: 4,
		},
		"a matched topic without the subscription does not count": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), good(5))
				s.Record(topic(in2), without)
			},
			ready: 5,
		},
		"a named topic without the subscription is missing": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), good(5))
				s.Record(topic(in2), without)
			},
			named: []string{in2}, ready: 5, missing: backlog.ErrSubscriptionNotFound, text: in2,
		},
		"no matched topic has the subscription": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), without)
				s.Fail(topic(in2), gone)
			},
			want: backlog.ErrSubscriptionNotFound,
			text: `in-1 has no subscription "public/default/resize", and has no other; it appears when the first replica ` +
				`connects; no topic that matches persistent://public/default/in-.* has it`,
		},
		"a matched topic that was deleted since does not count": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), good(5))
				s.Record(topic(in2), good(2))
				s.Fail(topic(in2), gone)
			},
			ready: 5,
		},
		"all matched topics were deleted since the listing": {
			prepare: func(s *backlog.Store) {
				list(s, in1)
				s.Fail(topic(in1), gone)
			},
			want: backlog.ErrTopicNotFound, text: "are gone",
		},
		"a matched topic that a later listing lacks is dropped": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), good(5))
				s.Record(topic(in2), good(2))
				backlog.List(s, namespace(), []string{in2}, start().Add(time.Second))
			},
			ready: 2,
		},
		"an old listing is dropped": {
			prepare: func(s *backlog.Store) {
				list(s, in1, in2)
				s.Record(topic(in1), good(5))
				s.Record(topic(in2), good(2))
				backlog.List(s, namespace(), nil, start().Add(-time.Second))
			},
			ready: 7,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			subscription := matching(t, "in-.*", tt.named...)
			store.Track("me", subscription)
			tt.prepare(store)
			r, err := store.Read(subscription, start().Add(tt.after))
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
				require.ErrorContains(t, err, tt.text)
				return
			}
			require.NoError(t, err)
			ready, err := r.Ready.LowerBound()
			require.NoError(t, err)
			require.InDelta(t, tt.ready, ready, 1e-9)
			require.Equal(t, tt.missing == nil, r.Coverage.Complete())
			if tt.missing != nil {
				require.True(t, r.Coverage.Lacks(tt.missing) || errors.Is(tt.missing, backlog.ErrStale))
				require.ErrorContains(t, r.Coverage.Err(), tt.text)
				unknown(t, backlog.ErrPartial, r.Ready, r.Total)
			}
			partitions, err := store.Partitions(subscription, start().Add(tt.after))
			require.NoError(t, err)
			var sum float64
			for _, partition := range partitions {
				sum += known(t, partition.Ready)
			}
			require.InDelta(t, tt.ready, sum, 1e-9, "partitions are those of the topics that count")
		})
	}
}

func TestReadExplainsAnUntrackedPattern(t *testing.T) {
	store := newStore(t)
	followed := matching(t, "in-.*")
	_, err := store.Read(followed, start())
	require.ErrorIs(t, err, backlog.ErrNotTracked)

	store.Track("me", followed)
	other := followed
	other.Name = "other"
	_, err = store.Read(other, start())
	require.ErrorIs(t, err, backlog.ErrNotTracked)

	store.Untrack("me")
	_, err = store.Read(followed, start())
	require.ErrorIs(t, err, backlog.ErrNotTracked)
}

func TestAListingKeepsTheHistoryOfTopicsThatStay(t *testing.T) {
	store := newStore(t)
	subscription := matching(t, "in-.*")
	store.Track("me", subscription)
	backlog.List(store, namespace(), []string{in1}, start())
	store.Record(topic(in1), answer{at: 0, published: 100, entries: 100}.sample())
	backlog.List(store, namespace(), []string{in2, in1, in1}, start().Add(5*time.Second))
	store.Record(topic(in1), answer{at: 10, published: 200, entries: 200}.sample())
	backlog.List(store, namespace(), []string{in1}, start().Add(11*time.Second))

	r, err := store.Read(subscription, start().Add(12*time.Second))
	require.NoError(t, err)
	require.InDelta(t, 10, known(t, r.PublishRate), 1e-9)
}

func TestATopicOfAnEarlierPatternKeepsItsHistory(t *testing.T) {
	store := newStore(t)
	store.Track("me", matching(t, "in-[12]"))
	backlog.List(store, namespace(), []string{in1, in2}, start())
	store.Record(topic(in1), answer{at: 0, published: 100, entries: 100}.sample())
	wider := matching(t, "in-1|out-.*")
	store.Track("me", wider)
	backlog.List(store, namespace(), []string{in1, in2}, start().Add(time.Second))
	store.Record(topic(in1), answer{at: 10, published: 200, entries: 200}.sample())
	r, err := store.Read(wider, start().Add(12*time.Second))
	require.NoError(t, err)
	require.InDelta(t, 10, known(t, r.PublishRate), 1e-9)
}

func TestALaterPatternHasTheNamespaceListedAgain(t *testing.T) {
	store := newStore(t)
	feed := store.Feed(false)
	store.Track("me", matching(t, "in-1"))
	running := feed.NextListing(namespace())
	running.Add(in1)
	running.Add(in2)
	feed.Changes()
	later := matching(t, "in-.*")
	store.Track("you", later)
	require.Equal(t, []backlog.Change{
		{Job: backlog.NamespaceJob(namespace()), Wanted: true, Soon: true, Tenants: []string{"me", "you"}},
	}, sortedTenants(feed.Changes()))
	store.RecordListing(running, start(), nil)
	_, err := store.Read(later, start())
	require.ErrorIs(t, err, backlog.ErrNoData, "that listing was requested before")
	require.ErrorContains(t, err, "the first listing of namespace public/default is under way")

	backlog.List(store, namespace(), []string{in1, in2}, start().Add(time.Second/2))
	store.Record(topic(in1), answer{at: 1, published: 5, entries: 5, backlogEntries: 5}.sample())
	store.Record(topic(in2), answer{at: 1, published: 6, entries: 6, backlogEntries: 6}.sample())
	r, err := store.Read(later, start().Add(time.Second))
	require.NoError(t, err)
	require.InDelta(t, 11, known(t, r.Ready), 1e-9)
}

func sortedTenants(changes []backlog.Change) []backlog.Change {
	for _, c := range changes {
		slices.Sort(c.Tenants)
	}
	return changes
}

// reference is a simple model of the store: it keeps no sets, and computes from scratch what should be tracked.
type reference struct {
	owners map[string]backlog.Subscription
	// listings are the last listings of the namespaces of patterns since they are followed, listed those that were listed.
	// Before that they are the topics of the first owner until then.
	listings map[string][]string
	listed   map[string]bool
	// all topics that may exist.
	all []string
}

// matches are the matches of a pattern, or false before its namespace was listed for it.
func (d *reference) matches(pattern string) (matches []string, listed bool) {
	rest := pattern[len("persistent://"):]
	listing, listed := d.listings[pattern], d.listed[pattern]
	whole := regexp.MustCompile("^(" + rest + ")$")
	for _, name := range listing {
		if whole.MatchString(name[len("persistent://"):]) {
			matches = append(matches, name)
		}
	}
	return matches, listed
}

// topics are the topics of the subscription, and false before a namespace was listed.
func (d *reference) topics(s backlog.Subscription) (topics []string, listed bool) {
	topics, listed = slices.Clone(s.Topics), true
	for _, pattern := range s.Patterns {
		matches, known := d.matches(pattern)
		topics, listed = append(topics, matches...), listed && known
	}
	slices.Sort(topics)
	return slices.Compact(topics), listed
}

// track changes what an owner tracks.
func (d *reference) track(owner string, s backlog.Subscription) {
	before, _ := d.topics(d.owners[owner])
	for _, pattern := range s.Patterns {
		if !slices.Contains(d.followed(), pattern) {
			d.listings[pattern] = before
		}
	}
	d.owners[owner] = s
}

// tracked are the topics that should be fetched, with the patterns that match them.
func (d *reference) tracked() map[string][]string {
	tracked := map[string][]string{}
	for _, s := range d.owners {
		for _, name := range s.Topics {
			tracked[name] = append(tracked[name], []string{}...)
		}
		for _, pattern := range s.Patterns {
			matches, _ := d.matches(pattern)
			for _, name := range matches {
				tracked[name] = append(tracked[name], pattern)
			}
		}
	}
	for name, patterns := range tracked {
		slices.Sort(patterns)
		tracked[name] = append([]string{}, slices.Compact(patterns)...)
	}
	return tracked
}

// followed are the patterns of the owners; the store forgets the matches of others.
func (d *reference) followed() (patterns []string) {
	for _, s := range d.owners {
		patterns = append(patterns, s.Patterns...)
	}
	return patterns
}

// In any order of tracking, untracking and listing, each subscription reads exactly the topics that are named or match
// now. Topic number i has 2^i messages, so the sum shows which were summed.
func TestExpansionAgreesWithItsReference(t *testing.T) {
	texts := []string{"[a-c]", "a|b", ".*", "t/n/[b-f].*", "t/n/e", "t/n/[^a]", "(a|b|c)", "g.+"}
	var all []string
	for _, namespace := range []string{"public/default", "t/n"} {
		for _, local := range []string{"a", "b", "c", "d", "e", "f"} {
			all = append(all, "persistent://"+namespace+"/"+local)
		}
	}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		pick := func(from []string) (picked []string) {
			for _, one := range from {
				if random.IntN(3) == 0 {
					picked = append(picked, one)
				}
			}
			return picked
		}
		store, twin := newStore(t), &reference{
			map[string]backlog.Subscription{}, map[string][]string{}, map[string]bool{}, all,
		}
		at := start()
		for step := range 60 {
			at = at.Add(time.Second)
			owner := fmt.Sprint("owner ", random.IntN(4))
			switch random.IntN(4) {
			case 0:
				store.Untrack(owner)
				delete(twin.owners, owner)
			case 1:
				name := []string{"public/default", "t/n"}[random.IntN(2)]
				namespace := backlog.Namespace{Cluster: cluster(), Name: name}
				listing := slices.DeleteFunc(pick(all),
					func(topic string) bool { return regexp.MustCompile(name).FindString(topic) == "" })
				random.Shuffle(len(listing), func(i, j int) { listing[i], listing[j] = listing[j], listing[i] })
				backlog.List(store, namespace, listing, at)
				for _, pattern := range twin.followed() {
					if strings.HasPrefix(pattern, "persistent://"+name+"/") {
						twin.listings[pattern], twin.listed[pattern] = listing, true
					}
				}
			default:
				var patterns []backlog.Pattern
				for _, text := range pick(texts) {
					pattern, err := backlog.ParsePattern(text)
					require.NoError(t, err)
					patterns = append(patterns, pattern)
				}
				s := backlog.NewSubscription(cluster(), fmt.Sprint("sub ", random.IntN(2)), pick(all)...).WithPatterns(patterns...)
				s.Bytes = random.IntN(2) == 0
				store.Track(owner, s)
				twin.track(owner, s)
			}
			for pattern := range twin.listings {
				if !slices.Contains(twin.followed(), pattern) {
					delete(twin.listings, pattern)
					delete(twin.listed, pattern)
				}
			}
			twin.compare(t, store, at, fmt.Sprint("seed ", seed, " step ", step))
		}
		for owner := range twin.owners {
			store.Untrack(owner)
		}
		require.Empty(t, backlog.Remains(store), seed)
	}
}

// compare records an answer about every topic that may exist, and reads for every owner.
func (d *reference) compare(t *testing.T, store *backlog.Store, at time.Time, when string) {
	t.Helper()
	require.Equal(t, d.tracked(), backlog.TrackedTopics(store), when)
	pairs := map[string]int{}
	for owner, s := range d.owners { // each is its own tenant
		if topics, _ := d.topics(s); len(topics) > 0 {
			pairs[owner] = len(topics)
		}
	}
	require.Equal(t, pairs, backlog.Pairs(store), when)
	for i, name := range d.all {
		var subscriptions []backlog.SubscriptionSample
		for _, s := range []string{"sub 0", "sub 1"} {
			subscriptions = append(subscriptions,
				backlog.SubscriptionSample{Name: s, Type: backlog.Shared, BacklogEntries: 1 << i})
		}
		store.Record(topic(name), backlog.TopicSample{At: at, Partitions: []backlog.PartitionSample{
			{Index: backlog.NotPartitioned, Subscriptions: subscriptions},
		}})
	}
	for owner, s := range d.owners {
		r, err := store.Read(s, at)
		topics, listed := d.topics(s)
		switch {
		case len(s.Topics)+len(s.Patterns) == 0:
			require.ErrorIs(t, err, backlog.ErrNotTracked, when)
		case !listed:
			require.ErrorIs(t, err, backlog.ErrNoData, when)
		case len(topics) == 0:
			require.ErrorIs(t, err, backlog.ErrTopicNotFound, when)
		default:
			require.NoError(t, err, when)
			var want float64
			for _, name := range topics {
				want += float64(int(1) << slices.Index(d.all, name))
			}
			require.InDelta(t, want, known(t, r.Total), 0, "%s: %s %v", when, owner, s)
		}
	}
}
