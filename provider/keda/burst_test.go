// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMoreAtOnceThanAreAnsweredAtOnceWaitTheirTurn(t *testing.T) {
	for name, test := range map[string]struct {
		ends bool
		code codes.Code
	}{
		"the first are answered": {true, codes.OK},
		"the first hang":         {false, codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := &interceptors{answers: newAnswers()}
				release := make(chan struct{})
				work := func(context.Context) (any, error) {
					<-release
					return "an answer", t.Context().Err()
				}
				var first, second errgroup.Group
				for range maxAnswers {
					first.Go(func() error { _, err := i.inTime(t.Context(), work); return err })
				}
				synctest.Wait()
				for range maxAnswers {
					second.Go(func() error { _, err := i.inTime(t.Context(), work); return err })
				}
				synctest.Wait()
				if test.ends {
					close(release)
				} else {
					defer close(release)
				}
				require.Equal(t, test.code, status.Code(second.Wait()), "KEDA starts the loops of all its ScaledObjects at once")
				require.Equal(t, test.ends, first.Wait() == nil)
			})
		})
	}
}
