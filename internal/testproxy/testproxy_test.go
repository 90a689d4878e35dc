package testproxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/testproxy"
)

// echo is a server that answers every line with itself, and tells of each that it got.
func echo(t *testing.T) (address string, got <-chan string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	lines := make(chan string, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for read := bufio.NewReader(conn); ; {
					line, err := read.ReadString('\n')
					if err != nil {
						return
					}
					lines <- line
					if _, err := io.WriteString(conn, line); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), lines
}

func dial(t *testing.T, p *testproxy.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func say(t *testing.T, conn net.Conn, line string) {
	t.Helper()
	if _, err := io.WriteString(conn, line); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("heard %q (%v), want %q", got, err, want)
	}
}

func TestWhatIsHeldBackReachesTheServerOnlyWhenItIsLetGo(t *testing.T) {
	t.Parallel()
	address, got := echo(t)
	p := testproxy.New(t, "tcp", address)
	p.Hold("two")
	first, second := dial(t, p), dial(t, p)
	say(t, second, "this is two\n")
	p.AwaitHeld(t)
	say(t, first, "one\n")
	hear(t, first, "one\n")
	if line := <-got; line != "one\n" {
		t.Fatalf("the server got %q first", line)
	}
	p.LetGo()
	hear(t, second, "this is two\n")
}

func TestACutAnswerEndsAfterItsFirstBytesAndTheServerHasTheRequest(t *testing.T) {
	t.Parallel()
	address, got := echo(t)
	p := testproxy.New(t, "tcp", address)
	for _, n := range []int{0, 3} {
		conn := dial(t, p)
		p.CutAnswer(n)
		say(t, conn, "hello\n")
		heard, err := io.ReadAll(conn)
		if len(heard) > n || err == nil {
			t.Errorf("heard %q with error %v, want at most %d bytes and a reset", heard, err, n)
		}
		if line := <-got; line != "hello\n" {
			t.Errorf("the server got %q", line)
		}
	}
	conn := dial(t, p)
	say(t, conn, "again\n")
	hear(t, conn, "again\n")
}

func TestABlackHoleAnswersNothing(t *testing.T) {
	t.Parallel()
	address, _ := echo(t)
	p := testproxy.New(t, "tcp", address)
	conn := dial(t, p)
	p.BlackHole()
	say(t, conn, "hello\n")
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestARefusingProxyLetsNobodyConnect(t *testing.T) {
	t.Parallel()
	address, _ := echo(t)
	p := testproxy.New(t, "tcp", address)
	p.Refuse()
	if _, err := net.Dial("tcp", p.Addr); err == nil {
		t.Error("it was accepted")
	}
}
