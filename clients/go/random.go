package postbote

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"io"
	"sync"
)

// randomBytes is how much of the system's random numbers is read at a time: a read of its own for each of 100,000 keys a
// second costs more than the rest of a push.
const randomBytes = 4096

// randomSource makes idempotency keys and the random part of delays.
type randomSource struct {
	mu     sync.Mutex
	source io.Reader
}

func newRandomSource() *randomSource {
	return &randomSource{source: bufio.NewReaderSize(rand.Reader, randomBytes)}
}

// key returns a random UUID, version 4.
func (r *randomSource) key() string {
	var drawn [16]byte
	r.read(drawn[:])
	drawn[6] = drawn[6]&0x0f | 0x40
	drawn[8] = drawn[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[0:8], drawn[0:4])
	hex.Encode(text[9:13], drawn[4:6])
	hex.Encode(text[14:18], drawn[6:8])
	hex.Encode(text[19:23], drawn[8:10])
	hex.Encode(text[24:36], drawn[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// float64 returns a number from 0 up to, but not including, 1.
func (r *randomSource) float64() float64 {
	var drawn [4]byte
	r.read(drawn[:])
	return float64(binary.BigEndian.Uint32(drawn[:])) / (1 << 32)
}

// read panics if the system has no random numbers: an idempotency key that is not random could lose an update.
func (r *randomSource) read(into []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := io.ReadFull(r.source, into); err != nil {
		panic("postbote: no random numbers: " + err.Error())
	}
}
