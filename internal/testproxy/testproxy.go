// Package testproxy is a network that does to a test's connections what real networks do: it holds requests
// back, cuts an answer off, swallows everything, or is not there. It is for tests only.
package testproxy

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy passes bytes on between its clients and one server, until it is told to do otherwise.
type Proxy struct {
	// Addr is where clients connect, as host:port.
	Addr string

	network, upstream string
	listener          net.Listener

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever something below changes
	links   map[*link]bool
	holding []byte // what is held back contains this; nil: nothing is
	cutAt   int    // how many bytes of the next answer pass before it is cut; negative: all
	dark    bool
	refused bool
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// New makes a proxy to the server at an address of a network, as in net.Dial, until the test ends.
func New(t testing.TB, network, upstream string) *Proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	p := &Proxy{
		Addr: listener.Addr().String(), network: network, upstream: upstream, listener: listener,
		changed: make(chan struct{}), links: map[*link]bool{}, cutAt: -1,
	}
	var running sync.WaitGroup
	running.Go(func() { p.accept(&running) })
	t.Cleanup(func() {
		p.Refuse()
		running.Wait()
	})
	return p
}

// Hold keeps back what clients send from the first bytes on that contain text; the proxy then has them, and
// the server has not.
func (p *Proxy) Hold(text string) { p.change(func() { p.holding = []byte(text) }) }

// AwaitHeld returns when the proxy holds something back.
func (p *Proxy) AwaitHeld(t testing.TB) {
	t.Helper()
	p.await(t, "nothing came that is to be held back", func() bool {
		for l := range p.links {
			if l.held {
				return true
			}
		}
		return false
	})
}

// LetGo sends on what was held back, and holds nothing from now on.
func (p *Proxy) LetGo() {
	p.change(func() {
		p.holding = nil
		for l := range p.links {
			l.held = false
		}
	})
}

// CutAnswer resets the connection on which the next bytes of an answer come, once n of them have passed.
// With 0 the server has answered and the client learns nothing of it.
func (p *Proxy) CutAnswer(n int) { p.change(func() { p.cutAt = n }) }

// BlackHole swallows everything from now on, in both directions, and resets nothing.
func (p *Proxy) BlackHole() { p.change(func() { p.dark = true }) }

// Refuse resets all connections, and refuses new ones for good.
func (p *Proxy) Refuse() {
	_ = p.listener.Close() // a second time it says that it is closed
	p.change(func() {
		p.refused = true
		for l := range p.links {
			l.reset()
		}
	})
}

func (p *Proxy) change(edit func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	edit()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) await(t testing.TB, otherwise string, reached func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		done, changed := reached(), p.changed
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatal(otherwise)
		}
	}
}

func (p *Proxy) accept(running *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial(p.network, p.upstream)
		if err != nil {
			_ = client.Close() // the client sees it
			continue
		}
		l := &link{client: client, server: server}
		p.change(func() {
			p.links[l] = true
			if p.refused { // while it was accepted
				l.reset()
			}
		})
		running.Go(func() { p.collect(l) })
		running.Go(func() { p.sendOn(l) })
		running.Go(func() { p.bringBack(l) })
	}
}

// collect reads what the client sends, so that a request which is held back is held back whole.
func (p *Proxy) collect(l *link) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buffer)
		p.change(func() {
			if !p.dark {
				l.queue = append(l.queue, buffer[:n]...)
			}
			l.held = l.held || p.holding != nil && bytes.Contains(l.queue, p.holding)
			l.ended = l.ended || err != nil
		})
		if err != nil {
			return
		}
	}
}

// sendOn passes the client's bytes on as long as nothing holds them.
func (p *Proxy) sendOn(l *link) {
	for {
		p.mu.Lock()
		changed, ready, ended := p.changed, []byte(nil), l.ended
		if !l.held {
			ready, l.queue = l.queue, nil
		}
		p.mu.Unlock()
		if len(ready) > 0 {
			if _, err := l.server.Write(ready); err != nil {
				return
			}
			continue
		}
		if ended {
			p.end(l)
			return
		}
		<-changed
	}
}

// bringBack passes the server's bytes on, or cuts them off.
func (p *Proxy) bringBack(l *link) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buffer)
		passing, cut := n, false
		if n > 0 {
			p.change(func() {
				if cut = p.cutAt >= 0 && p.cutAt < n; cut {
					passing, p.cutAt = p.cutAt, -1
				} else if p.cutAt >= 0 {
					p.cutAt -= n
				}
				if p.dark {
					passing = 0
				}
			})
		}
		if passing > 0 {
			if _, err := l.client.Write(buffer[:passing]); err != nil {
				cut = true
			}
		}
		if cut || err != nil {
			p.end(l)
			return
		}
	}
}

func (p *Proxy) end(l *link) {
	p.change(func() {
		l.reset()
		delete(p.links, l)
	})
}

// link is one client's connection and its continuation.
type link struct {
	client, server net.Conn

	queue []byte // read from the client, not yet sent on
	held  bool
	ended bool // the client sends no more, or the link was reset
}

// reset ends both halves at once, without the ceremony that would tell of an orderly end.
func (l *link) reset() {
	l.ended = true
	l.queue, l.held = nil, false
	for _, half := range []net.Conn{l.client, l.server} {
		if tcp, ok := half.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // it may be closed already
		}
		_ = half.Close()
	}
}
