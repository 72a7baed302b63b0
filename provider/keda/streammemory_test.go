// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
)

// frugalClient opens streams and keeps nothing of them, so that the memory of the process is the server's.
type frugalClient struct {
	t       testing.TB
	framer  *http2.Framer
	headers bytes.Buffer
	encoder *hpack.Encoder
	// opened is the last stream, and answered has the first response of each.
	opened   uint32
	answered chan struct{}
}

func dialFrugally(t testing.TB, address string) *frugalClient {
	t.Helper()
	var dialer net.Dialer
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	_, err = io.WriteString(connection, http2.ClientPreface)
	require.NoError(t, err)
	c := &frugalClient{t: t, framer: http2.NewFramer(connection, connection), answered: make(chan struct{}, 1000)}
	c.encoder = hpack.NewEncoder(&c.headers)
	require.NoError(t, c.framer.WriteSettings())
	require.NoError(t, c.framer.WriteWindowUpdate(0, 1<<30))
	go c.read()
	return c
}

func (c *frugalClient) read() {
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		if frame.Header().Type == http2.FrameData {
			c.answered <- struct{}{}
		}
	}
}

// open opens a stream of a method.
func (c *frugalClient) open(method string, of *pb.ScaledObjectRef) {
	c.t.Helper()
	c.headers.Reset()
	for _, field := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", "/" + pb.ExternalScaler_ServiceDesc.ServiceName + "/" + method},
		{":authority", "scaler.pulsar:9443"},
		{"content-type", "application/grpc"},
		{"user-agent", "grpc-go/1.85.0"},
		{"te", "trailers"},
	} {
		require.NoError(c.t, c.encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	message, err := proto.Marshal(of)
	require.NoError(c.t, err)
	framed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	c.opened += 2
	id := c.opened - 1
	require.NoError(c.t, c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: c.headers.Bytes(), EndHeaders: true,
	}))
	require.NoError(c.t, c.framer.WriteData(id, true, framed))
}

// memory is the heap and the stacks in use.
func memory() int64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
		runtime.ReadMemStats(&stats)
	}
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// A stream took 12.5 KB, of which 8 KB were its stack.
func TestStreamsTakeLittleMemory(t *testing.T) {
	const objects, atOnce = 5000, 100
	s := serve(t, func(*ServeConfig) {})
	refs := make([]*pb.ScaledObjectRef, objects)
	for i := range refs {
		policy := decidedPolicy(7, time.Now())
		policy.Name = fmt.Sprint("resize-", i)
		key := types.NamespacedName{Namespace: inNamespace, Name: policy.Name}
		s.change(func() { s.policies[key] = policy })
		refs[i] = ref("policy", policy.Name)
		refs[i].Name = fmt.Sprint("scaler-", i)
	}
	client := dialFrugally(t, s.address)
	empty := memory()
	for _, of := range refs { // which KEDA polls in any case
		_, err := s.server.IsActive(t.Context(), of)
		require.NoError(t, err)
	}
	polled := memory()
	for batch := range slices.Chunk(refs, atOnce) {
		for _, of := range batch {
			client.open("StreamIsActive", of)
		}
		for range batch {
			<-client.answered
		}
	}
	each := (memory() - polled) / objects
	t.Logf("a trigger takes %d bytes, its stream %d", (polled-empty)/objects, each)
	require.LessOrEqual(t, each, int64(8<<10))
}
