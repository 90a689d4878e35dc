package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of "abc"

// reserve has a service hand out an upload URL of this storage.
func reserve(t *testing.T, storage *wire, declared client.Declaration) (*client.Client, *client.Reservation) {
	t.Helper()
	service := play(t, success(http.StatusCreated, fmt.Sprintf(
		`{"object_id":"july.csv","fence":"1.1","key":"reports/july/1.1/july.csv","state":"reserved","upload":{"method":"PUT",
		"url":"%s/bucket/key?X-Amz-Signature=s3cr3t","expires_at":"2026-07-31T12:00:00Z",
		"headers":{"Host":"storage.example.com","If-None-Match":"*","Content-Type":"text/csv","Content-Length":"3","x-amz-checksum-sha256":"sum"}}}`,
		storage.URL)))
	c := service.client()
	reserved, err := held(c).Reserve(t.Context(), client.ReserveRequest{ObjectID: "july.csv", Declaration: declared})
	if err != nil {
		t.Fatal(err)
	}
	return c, reserved
}

// ok is how a storage accepts an upload.
func ok(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusOK) }

// s3Error is how a storage refuses one.
func s3Error(status int, code string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/xml")
		out.WriteHeader(status)
		fmt.Fprintf(out, `<?xml version="1.0"?><Error><Code>%s</Code><Message>No.</Message></Error>`, code)
	}
}

func TestReserveDeclaresWhatIsKnown(t *testing.T) {
	t.Parallel()
	reservation := success(http.StatusCreated, `{"object_id":"o","fence":"1.1","upload":{}}`)
	w := play(t, reservation, reservation)
	c, size := w.client(), int64(0)
	for _, declared := range []client.Declaration{{}, {ContentType: "text/csv", Filename: "july.csv", Size: &size, SHA256: digest}} {
		if _, err := held(c).Reserve(t.Context(), client.ReserveRequest{ObjectID: "o", Declaration: declared}); err != nil {
			t.Error(err)
		}
	}
	asked := w.asked()
	if diff := cmp.Diff([]string{
		"PUT", "/v1/reports/july/objects/1.1/o", "{}",
		`{"content_type":"text/csv","filename":"july.csv","size":0,"sha256":"` + digest + `"}`,
	}, []string{asked[0].Method, asked[0].Path, asked[0].Body, asked[1].Body}); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAnUploadSendsTheSignedHeadersAndNoKey(t *testing.T) {
	t.Parallel()
	var host string
	var length int64
	storage := play(t, func(_ http.ResponseWriter, in *http.Request) { host, length = in.Host, in.ContentLength })
	c, reserved := reserve(t, storage, client.Declaration{})
	path := filepath.Join(t.TempDir(), "july.csv")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.SendFile(t.Context(), reserved, path); err != nil {
		t.Fatal(err)
	}
	asked := storage.asked()[0]
	if diff := cmp.Diff(
		[]string{"PUT", "/bucket/key", "abc", "*", "text/csv", "sum", "", "storage.example.com", "3"},
		[]string{
			asked.Method, asked.Path, asked.Body, asked.Header.Get("If-None-Match"), asked.Header.Get("Content-Type"),
			asked.Header.Get("X-Amz-Checksum-Sha256"), asked.Header.Get("Authorization"), host, fmt.Sprint(length),
		},
	); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestAnEmptyUploadSaysThatItIsEmpty(t *testing.T) {
	t.Parallel()
	storage := play(t, func(out http.ResponseWriter, in *http.Request) {
		if in.ContentLength != 0 || len(in.TransferEncoding) > 0 {
			out.WriteHeader(http.StatusLengthRequired)
		}
	})
	c, reserved := reserve(t, storage, client.Declaration{})
	if err := c.Send(t.Context(), reserved, iotest.ErrReader(io.EOF), 0); err != nil {
		t.Error(err)
	}
}

func TestAnUploadIsRepeatedFromWhereItsBodyStood(t *testing.T) {
	t.Parallel()
	storage := play(t, cut, s3Error(http.StatusServiceUnavailable, "SlowDown"), ok)
	c, reserved := reserve(t, storage, client.Declaration{})
	body := strings.NewReader("header abc trailer")
	if _, err := body.Seek(7, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(t.Context(), reserved, body, 3); err != nil {
		t.Fatal(err)
	}
	for _, asked := range storage.asked() {
		if asked.Body != "abc" {
			t.Errorf("sent %q", asked.Body)
		}
	}
}

func TestABodyThatCannotBeReadAgainIsSentOnce(t *testing.T) {
	t.Parallel()
	storage := play(t, cut)
	c, reserved := reserve(t, storage, client.Declaration{})
	err := c.Send(t.Context(), reserved, io.MultiReader(strings.NewReader("abc")), 3)
	if !errors.Is(err, client.ErrOutcomeUnknown) || asError(t, err).Attempts != 1 {
		t.Errorf("got %v", err)
	}
}

func TestABodyThatFailsIsNotTheStoragesFault(t *testing.T) {
	t.Parallel()
	storage := play(t, ok)
	c, reserved := reserve(t, storage, client.Declaration{})
	broken := errors.New("the disk is broken")
	body := io.MultiReader(bytes.NewReader(make([]byte, 1<<16)), iotest.ErrReader(broken))
	err := c.Send(t.Context(), reserved, body, 1<<17)
	if !errors.Is(err, broken) || errors.Is(err, client.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestBytesThatAreThereAlreadyAreLeftToSealWhereTheirDigestIsDeclared(t *testing.T) {
	t.Parallel()
	for _, declared := range []client.Declaration{{SHA256: digest}, {}} {
		storage := play(t, cut, s3Error(http.StatusPreconditionFailed, "PreconditionFailed"))
		c, reserved := reserve(t, storage, declared)
		err := c.Send(t.Context(), reserved, strings.NewReader("abc"), 3)
		if declared.SHA256 != "" && err != nil {
			t.Errorf("declared: %v", err)
		}
		if declared.SHA256 == "" && !errors.Is(err, client.ErrConflict) {
			t.Errorf("not declared: %v", err)
		}
	}
}

func TestARefusedUploadTellsWhyButNotTheURL(t *testing.T) {
	t.Parallel()
	storage := play(t, s3Error(http.StatusForbidden, "SignatureDoesNotMatch"), cut)
	c, reserved := reserve(t, storage, client.Declaration{})
	err := c.Send(t.Context(), reserved, strings.NewReader("abc"), 3)
	if e := asError(t, err); !errors.Is(err, client.ErrUploadRefused) || e.Outcome != client.NotApplied ||
		!strings.Contains(err.Error(), "SignatureDoesNotMatch") {
		t.Errorf("got %v", err)
	}
	err = c.Send(t.Context(), reserved, io.MultiReader(strings.NewReader("abc")), 3)
	if err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("got %v", err)
	}
}

func TestAStorageThatIsAwayMayHaveTakenTheBytes(t *testing.T) {
	t.Parallel()
	slow := s3Error(http.StatusServiceUnavailable, "SlowDown")
	storage := play(t, slow, slow, slow)
	c, reserved := reserve(t, storage, client.Declaration{})
	err := c.Send(t.Context(), reserved, strings.NewReader("abc"), 3)
	if !errors.Is(err, client.ErrUnavailable) || !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestALargeUploadAsksFirst(t *testing.T) {
	t.Parallel()
	storage := play(t, ok)
	c, reserved := reserve(t, storage, client.Declaration{})
	if err := c.Send(t.Context(), reserved, bytes.NewReader(make([]byte, 5<<20)), 5<<20); err != nil {
		t.Fatal(err)
	}
	if asked := storage.asked()[0]; asked.Header.Get("Expect") != "100-continue" || len(asked.Body) != 5<<20 {
		t.Errorf("Expect %q, %d bytes", asked.Header.Get("Expect"), len(asked.Body))
	}
}
