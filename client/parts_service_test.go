package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testservice"
)

// numbers is bytes that need no room: no two blocks of 8 are alike.
type numbers struct{}

func (numbers) ReadAt(p []byte, at int64) (int, error) {
	for i := range p {
		place := uint64(at) + uint64(i)
		p[i] = byte((place / 8) * 0x9e3779b97f4a7c15 >> (8 * (place % 8)))
	}
	return len(p), nil
}

func numbersOf(size int64) *io.SectionReader { return io.NewSectionReader(numbers{}, 0, size) }

func digestOf(t *testing.T, body io.Reader) string {
	t.Helper()
	sum := sha256.New()
	if _, err := io.Copy(sum, body); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// sized is an upload of so many bytes of body.
func sized(body io.Reader, size int64) client.UploadRequest {
	return client.UploadRequest{ObjectID: "july.bin", Body: body, Declaration: client.Declaration{Size: &size}}
}

// wantState fails the test unless the object is in the state.
func wantState(t *testing.T, s *testservice.Service, k *client.Capability, state string) {
	t.Helper()
	got := s.Do(t, http.MethodGet, "/v1/reports/july/objects/"+k.Fence().String()+"/july.bin", nil).Want(t, http.StatusOK)
	if got.String(t, "state") != state {
		t.Errorf("the object is %s, not %s", got.String(t, "state"), state)
	}
}

// boundedStream sees that no more of it is read than fits into the buffers of the parts that are on their way.
type boundedStream struct {
	t    *testing.T
	body io.Reader
	wire *partsWire
	read int64
}

func (b *boundedStream) Read(p []byte) (int, error) {
	b.wire.mu.Lock()
	arrived := b.wire.arrived
	b.wire.mu.Unlock()
	n, err := b.body.Read(p)
	if b.read += int64(n); b.read-arrived > testAtOnce*testPartSize {
		b.t.Errorf("%d bytes were read, and %d have arrived", b.read, arrived)
	}
	return n, err
}

func TestABodyInPartsArrivesWholeThroughFaults(t *testing.T) {
	t.Parallel()
	const size = 150 << 20
	want := digestOf(t, numbersOf(size))
	for name, once := range map[string]bool{"at any place": false, "read once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testservice.Start(t)
			wire := &partsWire{faults: map[string]func(*http.Request) (*http.Response, error){
				"part 2": refused(http.StatusServiceUnavailable, ""), "part 7": refused(http.StatusForbidden, ""), "seal": lost,
			}}
			var body io.Reader = numbersOf(size)
			if once {
				body = &boundedStream{t: t, body: body, wire: wire}
			} else {
				wire.faults["part 5"] = lost // which arrives twice, and so is not for counting
			}
			k := partsWorker(t, s, wire)
			request, last := sized(body, size), int64(0)
			request.Progress = func(sent, total int64) {
				if sent <= last || total != size {
					t.Errorf("%d of %d after %d", sent, total, last)
				}
				last = sent
			}
			sealed, err := k.Upload(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if sealed.SHA256 != want || sealed.Size != size || last != size {
				t.Errorf("sealed %+v after %d bytes, want %s", sealed, last, want)
			}
			if wire.count("part 2") != 2 || wire.count("part 7") != 2 || wire.count("reserve ") != 2 || wire.count("seal") != 2 || wire.count("part 19") != 1 {
				t.Errorf("sent %v", wire.seen)
			}
			if _, err := k.Publish(t.Context(), client.PublishRequest{ObjectID: "july.bin"}); err != nil {
				t.Fatal(err)
			}
			content, err := worker(s).Open(t.Context(), "july")
			if err != nil {
				t.Fatal(err)
			}
			defer content.Close()
			if got := digestOf(t, content); got != want {
				t.Errorf("readers get %s, not %s", got, want)
			}
			if left := s.Storage.Uploads(t); len(left) > 0 {
				t.Errorf("unfinished: %v", left)
			}
		})
	}
}

func TestAStreamPartWhoseAnswerIsLostIsSentAgainFromMemory(t *testing.T) {
	t.Parallel()
	const size = 2*testPartSize + 5
	wire := &partsWire{faults: map[string]func(*http.Request) (*http.Response, error){"part 1": lost, "part 3": lost}}
	k := partsWorker(t, testservice.Start(t), wire)
	sealed, err := k.Upload(t.Context(), sized(io.MultiReader(numbersOf(size)), size))
	if err != nil || sealed.SHA256 != digestOf(t, numbersOf(size)) {
		t.Errorf("%+v, %v", sealed, err)
	}
	if wire.count("part 1") != 2 || wire.count("part 3") != 2 {
		t.Errorf("sent %v", wire.seen)
	}
}

func TestPartsWhoseURLsHaveExpiredGetFreshOnes(t *testing.T) {
	t.Parallel()
	const size = testPartSize + 5
	for name, refusalIsLost := range map[string]bool{"refused": false, "the refusal is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testservice.Start(t, func(c *service.Config) { c.Objects.UploadURLLife = 3 * time.Second })
			late := &dawdling{}
			var first atomic.Pointer[string] // the date of the URLs that expire
			wire := &partsWire{faults: map[string]func(*http.Request) (*http.Response, error){"part": func(in *http.Request) (*http.Response, error) {
				signed := in.URL.Query().Get("X-Amz-Date")
				first.CompareAndSwap(nil, &signed)
				answer, err := late.RoundTrip(in)
				if refusalIsLost && err == nil && *first.Load() == signed {
					answer.Body.Close()
					return nil, errors.New("the connection was reset")
				}
				return answer, err
			}}}
			if _, err := partsWorker(t, s, wire).Upload(t.Context(), sized(numbersOf(size), size)); err != nil {
				t.Error(err)
			}
			if wire.count("reserve ") < 2 {
				t.Errorf("sent %v", wire.seen)
			}
		})
	}
}

func TestAStreamOfAnotherLengthThanDeclaredIsDiscarded(t *testing.T) {
	t.Parallel()
	const size = 3 * testPartSize
	broken := errors.New("the disk is broken")
	for name, c := range map[string]struct {
		body io.Reader
		want error
	}{
		"a byte less":       {numbersOf(size - 1), client.ErrObjectMismatch},
		"a part less":       {numbersOf(2 * testPartSize), client.ErrObjectMismatch},
		"a byte more":       {numbersOf(size + 1), client.ErrObjectMismatch},
		"cannot be read":    {io.MultiReader(numbersOf(size-1), iotest.ErrReader(broken)), broken},
		"breaks at its end": {io.MultiReader(numbersOf(size), iotest.ErrReader(broken)), broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testservice.Start(t)
			wire := &partsWire{}
			k := partsWorker(t, s, wire)
			_, err := k.Upload(t.Context(), sized(io.MultiReader(c.body), size))
			if !errors.Is(err, c.want) || errors.Is(err, client.ErrOutcomeUnknown) {
				t.Errorf("got %v", err)
			}
			wantState(t, s, k, "condemned")
			if wire.count("seal") > 0 {
				t.Error("it was to be sealed")
			}
		})
	}
}

func TestAnUploadInPartsThatIsCancelledLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	const size = 10 * testPartSize
	for name, body := range map[string]io.Reader{"at any place": numbersOf(size), "read once": io.MultiReader(numbersOf(size))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, wire := testservice.Start(t), &partsWire{}
			k := partsWorker(t, s, wire)
			ctx, cancel := context.WithCancel(t.Context())
			request := sized(body, size)
			var over atomic.Bool
			request.Progress = func(sent, _ int64) {
				if over.Load() {
					t.Error("it goes on")
				}
				if sent > 2*testPartSize {
					cancel()
				}
			}
			label := "upload of " + strings.ReplaceAll(t.Name(), "/", " ")
			pprof.Do(ctx, pprof.Labels("of", label), func(ctx context.Context) {
				if _, err := k.Upload(ctx, request); !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrOutcomeUnknown) {
					t.Errorf("got %v", err)
				}
			})
			over.Store(true)
			if left := goroutines(t, label); len(left) > 0 {
				t.Errorf("still there:\n%s", strings.Join(left, "\n\n"))
			}
			wantState(t, s, k, "condemned")
		})
	}
}

// goroutines lists those of the client's that were begun under a label.
func goroutines(t *testing.T, label string) (found []string) {
	t.Helper()
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		t.Fatal(err)
	}
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, label) && strings.Contains(stack, "fenceline/client.(*parts") {
			found = append(found, stack)
		}
	}
	return found
}

func TestFurtherURLsAreAskedForWhenPartsNeedThem(t *testing.T) {
	t.Parallel()
	const size = 1500 * testPartSize
	s := testservice.Start(t)
	wire := &partsWire{faults: map[string]func(*http.Request) (*http.Response, error){
		"part": func(in *http.Request) (*http.Response, error) { // none of so many bytes is sent
			answer, err := refused(http.StatusOK, "")(in)
			answer.Header.Set("ETag", `"x"`)
			return answer, err
		},
		"part 1200": refused(http.StatusForbidden, ""),
	}}
	k := partsWorker(t, s, wire)
	request := sized(numbersOf(size), size)
	request.SHA256 = strings.Repeat("0", 64)
	// The storage knows nothing of the parts.
	if _, err := k.Upload(t.Context(), request); !errors.Is(err, client.ErrObjectIncomplete) {
		t.Errorf("got %v", err)
	}
	got := []int{wire.count("reserve "), wire.count("reserve 1001-1500"), wire.count("part 1"), wire.count("part 1200"), wire.count("part 1500")}
	if diff := cmp.Diff([]int{1, 2, 1, 2, 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := bytes.Count(wire.bodies["seal"], []byte("etag")); n != 1500 {
		t.Errorf("%d parts were to be sealed", n)
	}
	wantState(t, s, k, "condemned")
}

func TestPartsGrowSoThatThereAreAtMostTenThousand(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	for size, want := range map[int64]int64{10_000 * testPartSize: testPartSize, 10_000*testPartSize + 1: testPartSize + 1, 5 << 40: 549755814} {
		wire := &partsWire{}
		k := partsWorker(t, s, wire)
		broken := errors.New("enough")
		request := sized(io.MultiReader(iotest.ErrReader(broken)), size)
		request.ObjectID = fmt.Sprint(size)
		if _, err := k.Upload(t.Context(), request); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if declared := string(wire.bodies["reserve "]); !strings.Contains(declared, fmt.Sprintf(`"part_size":%d}`, want)) {
			t.Errorf("declared %s", declared)
		}
		if err := k.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// fickle is a source that is changed while it is read.
type fickle struct{ reads atomic.Int64 }

func (f *fickle) ReadAt(p []byte, at int64) (int, error) {
	n, err := numbers{}.ReadAt(p, at)
	if at == 0 {
		p[0] = byte(f.reads.Add(1))
	}
	return n, err
}

func TestASourceThatChangesWhileItIsUploadedIsADigestMismatch(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	k := partsWorker(t, s, &partsWire{})
	_, err := k.Upload(t.Context(), sized(io.NewSectionReader(&fickle{}, 0, 2*testPartSize), 2*testPartSize))
	if !errors.Is(err, client.ErrDigestMismatch) || !errors.Is(err, client.ErrObjectMismatch) {
		t.Errorf("got %v", err)
	}
	wantState(t, s, k, "condemned")
}

func TestAnUploadInPartsThatWasDoneIsDoneWhenRepeated(t *testing.T) {
	t.Parallel()
	const size = 2 * testPartSize
	s, wire := testservice.Start(t), &partsWire{}
	k := partsWorker(t, s, wire)
	for range 2 {
		if _, err := k.Upload(t.Context(), sized(numbersOf(size), size)); err != nil {
			t.Error(err)
		}
	}
	other := io.NewSectionReader(numbers{}, 1, size)
	if _, err := k.Upload(t.Context(), sized(other, size)); !errors.Is(err, client.ErrDigestMismatch) {
		t.Errorf("got %v", err)
	}
	if n := wire.count("part 1"); n != 1 {
		t.Errorf("sent %d times", n)
	}
	wantState(t, s, k, "sealed") // what others have put there is not for discarding
}

func TestAServiceThatKnowsNothingOfPartsGetsTheBodyAsAWhole(t *testing.T) {
	t.Parallel()
	const size = 2 * testPartSize
	for name, body := range map[string]io.Reader{"at any place": numbersOf(size), "read once": io.MultiReader(numbersOf(size))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := &partsWire{faults: map[string]func(*http.Request) (*http.Response, error){"reserve ": refused(http.StatusBadRequest,
				`{"code":"invalid_request","status":400,"outcome":"not_applied","field":"multipart"}`)}}
			sealed, err := partsWorker(t, testservice.Start(t), wire).Upload(t.Context(), sized(body, size))
			if err != nil || sealed.SHA256 != digestOf(t, numbersOf(size)) {
				t.Errorf("%+v, %v", sealed, err)
			}
			if wire.count("reserve ") != 2 || wire.count("whole") != 1 || wire.count("part 1") != 0 {
				t.Errorf("sent %v", wire.seen)
			}
		})
	}
}
