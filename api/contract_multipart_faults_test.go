package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

// interceptor is a network between the service and the storage that does something to certain requests.
type interceptor struct {
	act atomic.Pointer[func(w http.ResponseWriter, r *http.Request, next http.Handler)]
}

// between puts the interceptor before the storage, for the service alone: workers see the storage itself.
func (i *interceptor) between(t *testing.T) func(*service.Config) {
	return func(c *service.Config) {
		server, err := url.Parse(c.Bucket.Endpoint)
		if err != nil {
			t.Fatal(err)
		}
		next := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Host = r.In.Host // which is signed
		}}
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if act := i.act.Load(); act != nil {
				(*act)(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		}))
		t.Cleanup(proxy.Close)
		c.Bucket.PublicEndpoint, c.Bucket.Endpoint = c.Bucket.Endpoint, proxy.URL
	}
}

func (i *interceptor) do(act func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	i.act.Store(&act)
}

func (i *interceptor) nothing() { i.act.Store(nil) }

// isCreate and isComplete know the two calls that an upload in parts begins and ends with.
func isCreate(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploads")
}

func isComplete(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

// refuse breaks the connection of such requests before the storage has them.
func (i *interceptor) refuse(such func(*http.Request) bool) {
	i.do(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if such(r) {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// lose lets the storage do what such requests ask for, and breaks the connection before it is heard of.
func (i *interceptor) lose(such func(*http.Request) bool) {
	i.do(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !such(r) {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
}

// finish goes on from wherever an upload in parts has come to, and fails the test unless it ends as it should.
func (w *world) finish(t *testing.T, fence, object, content string) {
	t.Helper()
	path := objectPath("july", fence, object)
	reserved := w.DoAs(t, w.Worker, "PUT", path, multipart(content)).Want(t, 200)
	w.seal(t, path, content, uploadParts(t, reserved, content))
}

func (w *world) seal(t *testing.T, path, content string, parts []doc) {
	t.Helper()
	got := w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": parts}).Want(t, 200)
	equal(t, got, doc{"state": "sealed", "size": len(content), "sha256": hexDigest(content)})
	if left := w.Storage.Uploads(t); len(left) > 0 {
		t.Errorf("uploads are left: %q", left)
	}
}

func TestAReservationWhoseUploadCouldNotBeginIsFinishedByRepeatingIt(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		arm  func(*interceptor)
		left bool // uploads that nobody has written down
	}{
		"the storage was not asked": {func(i *interceptor) { i.refuse(isCreate) }, false},
		"its answer was lost":       {func(i *interceptor) { i.lose(isCreate) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var network interceptor
			w := begin(t, network.between(t))
			fence, content := w.grant(t, "july", "a7"), threeParts()
			path := objectPath("july", fence, "o")
			fault.arm(&network)
			equal(t, w.DoAs(t, w.Worker, "PUT", path, multipart(content)).Refused(t, 503, "unavailable"), doc{"outcome": "unknown"})
			if left := w.Storage.Uploads(t); fault.left != (len(left) > 0) {
				t.Fatalf("uploads after the fault: %q", left)
			}
			equal(t, w.DoAs(t, w.Worker, "GET", path, nil).Want(t, 200), doc{"state": "reserved"})
			parts := doc{"parts": []doc{{"number": 1, "etag": "x"}, {"number": 2, "etag": "x"}, {"number": 3, "etag": "x"}}}
			w.DoAs(t, w.Worker, "POST", path+"/seal", parts).Refused(t, 409, "object_incomplete")
			network.nothing()
			w.finish(t, fence, "o", content)
		})
	}
}

func TestAnUploadThatCouldNotBeWrittenDownIsReplacedByTheNext(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	w := beginOn(t, db)
	fence, content := w.grant(t, "july", "a7"), threeParts()
	db.Exec(t, "REVOKE EXECUTE ON FUNCTION record_upload FROM fenceline_service")
	w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, "o"), multipart(content)).Refused(t, 500, "internal")
	if left := w.Storage.Uploads(t); len(left) != 1 {
		t.Fatalf("uploads %q, want the one that was begun", left)
	}
	db.Exec(t, "GRANT EXECUTE ON FUNCTION record_upload TO fenceline_service")
	w.finish(t, fence, "o", content)
}

func TestASealWhoseCompletionWasNotHeardOfIsFinishedByRepeatingIt(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(t *testing.T, w *world, fence, path string, parts []doc){
		"the same seal": func(t *testing.T, w *world, _, path string, parts []doc) {
			w.seal(t, path, threeParts(), parts)
		},
		"a seal without parts": func(t *testing.T, w *world, _, path string, _ []doc) {
			w.seal(t, path, threeParts(), nil)
		},
		"a publish": func(t *testing.T, w *world, fence, path string, _ []doc) {
			w.publish(t, "july", "k1", doc{"fence": fence, "object_id": "o"}).Want(t, 201)
			if got := w.get(t, "/v1/reports/july/content").Want(t, 200); string(got.Body) != threeParts() {
				t.Errorf("%d bytes are read", len(got.Body))
			}
			w.seal(t, path, threeParts(), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var network interceptor
			w := begin(t, network.between(t))
			fence, content := w.grant(t, "july", "a7"), threeParts()
			path := objectPath("july", fence, "o")
			parts := uploadParts(t, w.DoAs(t, w.Worker, "PUT", path, multipart(content)).Want(t, 201), content)
			network.lose(isComplete)
			equal(t, w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": parts}).Refused(t, 503, "unavailable"), doc{"outcome": "not_applied"})
			if keys := w.Storage.Keys(t); !slices.Contains(keys, "reports/july/1.1/o") {
				t.Fatalf("the storage has %q: the upload was not completed", keys)
			}
			equal(t, w.DoAs(t, w.Worker, "GET", path, nil).Want(t, 200), doc{"state": "reserved"})
			network.nothing()
			again(t, w, fence, path, parts)
		})
	}
}

func TestASealFindsWhatWasCompletedWhereTheStorageHasForgottenTheUpload(t *testing.T) {
	t.Parallel()
	var network interceptor
	w := begin(t, network.between(t))
	fence, content := w.grant(t, "july", "a7"), threeParts()
	path := objectPath("july", fence, "o")
	parts := uploadParts(t, w.DoAs(t, w.Worker, "PUT", path, multipart(content)).Want(t, 201), content)
	network.lose(isComplete)
	w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": parts}).Refused(t, 503, "unavailable")
	network.do(func(w http.ResponseWriter, r *http.Request, next http.Handler) { // as AWS answers; some know for longer
		if !isComplete(r) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchUpload</Code><Message>It is over.</Message></Error>") // a lost answer shows
	})
	w.seal(t, path, content, parts)
}

func TestAnUploadThatSomebodyAbortedIsIncomplete(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence, content := w.grant(t, "july", "a7"), threeParts()
	path := objectPath("july", fence, "o")
	reserved := w.DoAs(t, w.Worker, "PUT", path, multipart(content)).Want(t, 201)
	parts := uploadParts(t, reserved, content)
	if err := w.Storage.Open(t).AbortUploads(t.Context(), reserved.String(t, "key")); err != nil {
		t.Fatal(err)
	}
	w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": parts}).Refused(t, 409, "object_incomplete")
}

func TestASealThatCouldNotBeWrittenDownIsFinishedByRepeatingIt(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	w := beginOn(t, db)
	fence, content := w.grant(t, "july", "a7"), threeParts()
	path := objectPath("july", fence, "o")
	parts := uploadParts(t, w.DoAs(t, w.Worker, "PUT", path, multipart(content)).Want(t, 201), content)
	db.Exec(t, "REVOKE EXECUTE ON FUNCTION seal FROM fenceline_service")
	w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": parts}).Refused(t, 500, "internal")
	db.Exec(t, "GRANT EXECUTE ON FUNCTION seal TO fenceline_service")
	w.seal(t, path, content, parts)
}

func TestConcurrentReservationsUseOneUploadAndLeaveNoOther(t *testing.T) {
	t.Parallel()
	const workers = 8
	var network interceptor
	w := begin(t, network.between(t))
	fence, content := w.grant(t, "july", "a7"), threeParts()
	path := objectPath("july", fence, "o")

	// All of them have found no upload written down before the first is begun.
	var all sync.WaitGroup
	all.Add(workers)
	network.do(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if isCreate(r) {
			all.Done()
			all.Wait()
		}
		next.ServeHTTP(w, r)
	})
	answers := make([]testservice.Answer, workers)
	var asking sync.WaitGroup
	for i := range answers {
		asking.Go(func() { answers[i] = w.DoAs(t, w.Worker, "PUT", path, multipart(content)) })
	}
	asking.Wait()
	network.nothing()

	uploads, created := map[string]bool{}, 0
	for _, answer := range answers {
		if answer.Status == 201 {
			created++
		} else {
			answer.Want(t, 200)
		}
		for _, p := range toldOf(t, answer).Upload.Parts {
			signed, err := url.Parse(p.URL)
			if err != nil {
				t.Fatal(err)
			}
			uploads[signed.Query().Get("uploadId")] = true
		}
	}
	left := w.Storage.Uploads(t)
	if created != 1 || len(uploads) != 1 || len(left) != 1 {
		t.Errorf("%d answers of 201, URLs of %d uploads, unfinished %q; want one of each", created, len(uploads), left)
	}
	var parts []doc
	for i, answer := range answers[:3] { // each uploads a part of it
		n := len(toldOf(t, answer).Upload.Parts) - 1 - i
		parts = append(parts, uploadParts(t, answer, content)[n])
	}
	w.seal(t, path, content, parts)
}

func TestAnUploadThatBeginsWhenTheObjectWasDiscardedIsAborted(t *testing.T) {
	t.Parallel()
	var network interceptor
	w := begin(t, network.between(t))
	fence := w.grant(t, "july", "a7")
	path := objectPath("july", fence, "o")
	network.do(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if isCreate(r) {
			w.DoAs(t, w.Worker, "DELETE", path, nil).Want(t, 200)
		}
		next.ServeHTTP(rw, r)
	})
	w.DoAs(t, w.Worker, "PUT", path, multipart("hello")).Refused(t, 409, "object_exists")
	if left := w.Storage.Uploads(t); len(left) > 0 {
		t.Errorf("uploads are left: %q", left)
	}
}
