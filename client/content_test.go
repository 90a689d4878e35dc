package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

const reprDigest = "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:" // of "abc"

// content answers with bytes and with what it says of them.
func content(body string, header map[string]string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			out.Header().Set(name, value)
		}
		io.WriteString(out, body)
	}
}

func TestOpenStreamsTheBytesAndWhatIsKnownOfThem(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]map[string]string{
		"Repr-Digest":        {"Repr-Digest": reprDigest},
		"one of two digests": {"Repr-Digest": "sha-512=:AAAA:, " + reprDigest},
		"the digest as ETag": {"ETag": `"` + digest + `"`},
		"an ETag of its own": {"Repr-Digest": reprDigest, "ETag": `"2-1.1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header["Content-Type"] = "text/csv"
			header["Content-Disposition"] = `attachment; filename*=UTF-8''j%C3%BCli.csv`
			w := play(t, proxyError(http.StatusBadGateway), content("abc", header))
			got, err := w.client().Open(t.Context(), "july")
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			bytes, err := io.ReadAll(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(
				[]any{"abc", "text/csv", "jüli.csv", int64(3), digest},
				[]any{string(bytes), got.ContentType, got.Filename, got.Size, got.SHA256},
			); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if asked := w.asked()[1]; asked.Path != "/v1/reports/july/content" || asked.Header.Get("Accept-Encoding") != "identity" {
				t.Errorf("asked %v", asked)
			}
		})
	}
}

func TestBytesThatAreNotThosePublishedEndWithAnError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "ab", "abd", "abcd"} {
		w := play(t, content(body, map[string]string{"Repr-Digest": reprDigest}))
		got, err := w.client().OpenVersion(t.Context(), "july", 2)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(got); !errors.Is(err, client.ErrDigestMismatch) {
			t.Errorf("%q: %v", body, err)
		}
		got.Close()
		if path := w.asked()[0].Path; path != "/v1/reports/july/publications/2/content" {
			t.Errorf("asked %s", path)
		}
	}
}

func TestBytesWithoutADigestAreNotTaken(t *testing.T) {
	t.Parallel()
	for _, header := range []map[string]string{{}, {"ETag": `"2-1.1"`}, {"Repr-Digest": "sha-256=:AAAA:"}, {"Repr-Digest": "sha-256=:!:"}} {
		w := play(t, content("abc", header))
		if _, err := w.client().Open(t.Context(), "july"); !errors.Is(err, client.ErrDigestMismatch) {
			t.Errorf("%v: %v", header, err)
		}
	}
}

func TestACutDownloadIsAnErrorAndNoEnd(t *testing.T) {
	t.Parallel()
	w := play(t, cutAfter(http.Header{"Repr-Digest": {reprDigest}}, 3, "ab"))
	got, err := w.client().Open(t.Context(), "july")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if bytes, err := io.ReadAll(got); string(bytes) != "ab" || !errors.Is(err, client.ErrUnavailable) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", bytes, err)
	}
}

func TestDamagedBytesAreNotAskedForAgain(t *testing.T) {
	t.Parallel()
	w := play(t, problem(http.StatusBadGateway, "object_damaged", nil))
	if _, err := w.client().Open(t.Context(), "july"); !errors.Is(err, client.ErrDigestMismatch) || errors.Is(err, client.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestADownloadThatTheCallerEndsIsNoUnavailability(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	w := play(t, func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("Repr-Digest", reprDigest)
		io.WriteString(out, "a")
		out.(http.Flusher).Flush()
		<-in.Context().Done()
	})
	got, err := w.client().Open(ctx, "july")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	cancel(errors.New("interrupt signal received"))
	if _, err := io.ReadAll(got); !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
