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
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

// stagingArea plays the service and its storage for one object, july.csv. As a real storage
// does it writes the bytes of a key once. Before it takes an upload, puts answer one each.
type stagingArea struct {
	*httptest.Server
	puts []http.HandlerFunc

	mu           sync.Mutex
	reservations []string // their bodies
	sent         []string // the bodies of the uploads
	stored       *string
}

func newStagingArea(t *testing.T, puts ...http.HandlerFunc) *stagingArea {
	t.Helper()
	a := &stagingArea{puts: puts}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/reports/july/objects/1.1/july.csv", a.reserve)
	mux.HandleFunc("PUT /bucket/{url}", a.put)
	mux.HandleFunc("POST /v1/reports/july/objects/1.1/july.csv/seal", a.seal)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *stagingArea) reserve(out http.ResponseWriter, in *http.Request) {
	body, _ := io.ReadAll(in.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reservations = append(a.reservations, string(body))
	success(http.StatusCreated, fmt.Sprintf(
		`{"object_id":"july.csv","fence":"1.1","state":"reserved","upload":{"method":"PUT","url":"%s/bucket/%d"}}`, a.URL, len(a.reservations),
	))(out, in)
}

func (a *stagingArea) put(out http.ResponseWriter, in *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.puts) > 0 {
		answer := a.puts[0]
		a.puts = a.puts[1:]
		answer(out, in)
		return
	}
	if a.stored != nil {
		s3Error(http.StatusPreconditionFailed, "PreconditionFailed")(out, in)
		return
	}
	a.take(in)
}

// take stores what is sent.
func (a *stagingArea) take(in *http.Request) {
	body, _ := io.ReadAll(in.Body)
	text := string(body)
	a.sent, a.stored = append(a.sent, text), &text
}

// takeAndCut is an upload whose answer is lost. The lock is held.
func (a *stagingArea) takeAndCut(_ http.ResponseWriter, in *http.Request) {
	a.take(in)
	panic(http.ErrAbortHandler)
}

func (a *stagingArea) seal(out http.ResponseWriter, in *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stored == nil {
		problem(http.StatusConflict, "object_incomplete", nil)(out, in)
		return
	}
	success(http.StatusOK, fmt.Sprintf(`{"state":"sealed","size":%d,"sha256":"%s"}`, len(*a.stored), sha256Of(*a.stored)))(out, in)
}

func sha256Of(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// capability is one under the fence 1.1.
func (a *stagingArea) capability() *client.Capability {
	return held((&wire{Server: a.Server}).client())
}

// onlyRead hides that a body could be read again.
func onlyRead(text string) io.Reader { return io.MultiReader(strings.NewReader(text)) }

// july.csv, from a body.
func csv(body io.Reader) client.UploadRequest {
	return client.UploadRequest{ObjectID: "july.csv", Body: body, Declaration: client.Declaration{ContentType: "text/csv"}}
}

func TestAnUploadDeclaresWhatItCanLearn(t *testing.T) {
	t.Parallel()
	whole := `{"content_type":"text/csv","size":3,"sha256":"` + digest + `"}`
	three, large := int64(3), int64(client.MaxMemory+1)
	long := strings.Repeat("x", client.MaxMemory+1)
	longDeclared := fmt.Sprintf(`{"content_type":"text/csv","size":%d,"sha256":"%s"}`, large, sha256Of(long))
	streamed := csv(onlyRead(long))
	streamed.Size = &large
	sized := csv(onlyRead("abc"))
	sized.Size = &three
	for name, c := range map[string]struct {
		request        client.UploadRequest
		declared, sent string
	}{
		"can be read again":          {csv(strings.NewReader("abc")), whole, "abc"},
		"short":                      {csv(onlyRead("abc")), whole, "abc"},
		"byte by byte":               {csv(iotest.OneByteReader(onlyRead("abc"))), whole, "abc"},
		"short, of declared size":    {sized, whole, "abc"},
		"long, of unknown size":      {csv(onlyRead(long)), longDeclared, long},
		"long, of declared size":     {streamed, fmt.Sprintf(`{"content_type":"text/csv","size":%d}`, large), long},
		"nothing":                    {csv(nil), `{"content_type":"text/csv","size":0,"sha256":"` + sha256Of("") + `"}`, ""},
		"nothing, and it cannot say": {csv(onlyRead("")), `{"content_type":"text/csv","size":0,"sha256":"` + sha256Of("") + `"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newStagingArea(t)
			sealed, err := a.capability().Upload(t.Context(), c.request)
			if err != nil {
				t.Fatal(err)
			}
			if sealed.SHA256 != sha256Of(c.sent) || sealed.Size != int64(len(c.sent)) || a.sent[0] != c.sent {
				t.Errorf("sealed %+v, sent %d bytes", sealed, len(a.sent[0]))
			}
			if diff := cmp.Diff([]string{c.declared}, a.reservations); diff != "" {
				t.Errorf("declared (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnUploadWhoseAnswerIsLostSucceeds(t *testing.T) {
	t.Parallel()
	large := int64(client.MaxMemory + 1)
	long := strings.Repeat("x", client.MaxMemory+1)
	streamed := csv(onlyRead(long))
	streamed.Size = &large
	for name, request := range map[string]client.UploadRequest{
		"repeated, and answered 412":       csv(strings.NewReader("abc")),
		"kept, repeated, and answered 412": csv(onlyRead("abc")),
		"streamed, and looked for":         streamed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newStagingArea(t)
			a.puts = []http.HandlerFunc{a.takeAndCut}
			if _, err := a.capability().Upload(t.Context(), request); err != nil {
				t.Error(err)
			}
			if len(a.sent) != 1 {
				t.Errorf("%d were stored", len(a.sent))
			}
		})
	}
}

func TestOtherBytesInPlaceAreNoSuccess(t *testing.T) {
	t.Parallel()
	large, long := int64(client.MaxMemory+1), strings.Repeat("x", client.MaxMemory+1)
	streamed := csv(onlyRead(long))
	streamed.Size = &large
	for name, request := range map[string]client.UploadRequest{"again": csv(strings.NewReader("abc")), "once": streamed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newStagingArea(t)
			other := "other bytes"
			a.stored = &other
			_, err := a.capability().Upload(t.Context(), request)
			// Where the refusal came before all bytes were read, their digest is not known.
			if !errors.Is(err, client.ErrObjectMismatch) && (name == "again" || !errors.Is(err, client.ErrConflict)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAStreamOfWhichNothingWasReadIsSentAgain(t *testing.T) {
	t.Parallel()
	large, long := int64(client.MaxMemory+1), strings.Repeat("x", client.MaxMemory+1)
	request := csv(onlyRead(long))
	request.Size = &large
	// A refusal before the storage has asked for the body.
	a := newStagingArea(t, s3Error(http.StatusServiceUnavailable, "SlowDown"), s3Error(http.StatusForbidden, "AccessDenied"))
	if _, err := a.capability().Upload(t.Context(), request); err != nil || a.sent[0] != long {
		t.Errorf("%d bytes, %v", len(a.sent[0]), err)
	}
}

func TestAnUploadThatIsStoppedByTheLossOfItsLeaseSaysThatAlone(t *testing.T) {
	t.Parallel()
	ctx, lose := context.WithCancelCause(t.Context())
	lost := fmt.Errorf("%w: for a test", client.ErrLeaseLost)
	a := newStagingArea(t, func(_ http.ResponseWriter, in *http.Request) {
		_, _ = io.ReadAll(in.Body)
		lose(lost)
		<-in.Context().Done()
	})
	_, err := a.capability().Upload(ctx, csv(strings.NewReader("abc")))
	if !errors.Is(err, lost) || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestAStreamThatWasCutOffIsAnUnknownOutcomeAndNoObject(t *testing.T) {
	t.Parallel()
	large, long := int64(client.MaxMemory+1), strings.Repeat("x", client.MaxMemory+1)
	request := csv(onlyRead(long))
	request.Size = &large
	a := newStagingArea(t, func(_ http.ResponseWriter, in *http.Request) {
		_, _ = io.CopyN(io.Discard, in.Body, 1000)
		panic(http.ErrAbortHandler)
	})
	if _, err := a.capability().Upload(t.Context(), request); !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestAnUploadURLThatHasExpiredIsRenewed(t *testing.T) {
	t.Parallel()
	gone := s3Error(http.StatusForbidden, "AccessDenied")
	for name, c := range map[string]struct {
		refusals int
		want     error
	}{
		"once": {1, nil}, "three times": {3, nil}, "and another reason": {4, client.ErrUploadRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newStagingArea(t)
			for range c.refusals {
				a.puts = append(a.puts, gone)
			}
			if _, err := a.capability().Upload(t.Context(), csv(strings.NewReader("abc"))); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if n := len(a.reservations); n != min(c.refusals, 3)+1 {
				t.Errorf("reserved %d times", n)
			}
		})
	}
}

func TestAnUploadThatWasDoneIsDoneWhenRepeated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{"abc": nil, "abd": client.ErrObjectMismatch} {
		w := play(t, problem(http.StatusConflict, "object_exists", nil), success(http.StatusOK, `{"state":"sealed","size":3,"sha256":"`+digest+`"}`))
		if _, err := held(w.client()).Upload(t.Context(), csv(strings.NewReader(text))); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestProgressTellsHowFarAnUploadHasCome(t *testing.T) {
	t.Parallel()
	size := int64(3 << 20)
	a := newStagingArea(t)
	request := csv(bytes.NewReader(make([]byte, size)))
	var last int64
	request.Progress = func(sent, total int64) {
		if sent <= last || sent > total || total != size {
			t.Errorf("%d of %d after %d", sent, total, last)
		}
		last = sent
	}
	if _, err := a.capability().Upload(t.Context(), request); err != nil || last != size {
		t.Errorf("%d of %d, %v", last, size, err)
	}
}

func TestAFileIsUploadedUnderItsNameFromWhereItBegins(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "table.csv")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newStagingArea(t)
	if _, err := a.capability().UploadFile(t.Context(), path, client.UploadRequest{ObjectID: "july.csv"}); err != nil {
		t.Fatal(err)
	}
	if want := `{"filename":"table.csv","size":3,"sha256":"` + digest + `"}`; a.reservations[0] != want {
		t.Errorf("declared %s", a.reservations[0])
	}
}

func TestABodyOfAnotherSizeThanDeclaredIsNotReserved(t *testing.T) {
	t.Parallel()
	four := int64(4)
	for _, body := range []io.Reader{strings.NewReader("abc"), onlyRead("abc")} {
		request := csv(body)
		request.Size = &four
		if _, err := held(play(t).client()).Upload(t.Context(), request); !errors.Is(err, client.ErrObjectMismatch) {
			t.Errorf("got %v", err)
		}
	}
}

func TestABodyThatCannotBeReadLeavesNoFileBehind(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	broken := errors.New("the disk is broken")
	body := io.MultiReader(bytes.NewReader(make([]byte, client.MaxMemory+1)), iotest.ErrReader(broken))
	if _, err := held(play(t).client()).Upload(t.Context(), csv(body)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := newStagingArea(t).capability().Upload(t.Context(), csv(onlyRead(strings.Repeat("x", client.MaxMemory+1)))); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
