package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
)

// The steps that most cases begin with. What they do is what other rows promise; here it must only succeed.

// longLease is the lease of a worker that is not to lose it.
func longLease() body { return body{"holder": "worker-7", "ttl_ms": 60000} }

// grant takes a lease that lasts, and returns its fence.
func (w *Walk) grant(id string) string {
	return w.Want(w.Worker("PUT", "leases/"+id, longLease()), 201).Text("fence")
}

// release ends a lease.
func (w *Walk) release(id string) { w.Want(w.Worker("DELETE", "leases/"+id, nil), 200) }

// overtake ends a lease and takes the next, under which the fence of the first is stale.
func (w *Walk) overtake(former, id string) string {
	w.release(former)
	return w.grant(id)
}

// brief takes the shortest lease there is, waits until it has expired, and returns its fence.
func (w *Walk) brief(id string) string {
	fence := w.Want(w.Worker("PUT", "leases/"+id, body{"holder": "worker-7", "ttl_ms": 1000}), 201).Text("fence")
	w.Await("the lease has expired", func() bool { return w.Worker("GET", "lease", nil).Status == 404 })
	return fence
}

// revoke bars a fence, or the highest granted.
func (w *Walk) revoke(fence string) Answer {
	asked := body{"reason": "it hangs"}
	if fence != "" {
		asked["fence"] = fence
	}
	return w.Operator("POST", "lease/revoke", asked)
}

// set changes settings of the case's report.
func (w *Walk) set(settings body) { w.Want(w.Operator("PATCH", "settings", settings), 200) }

func object(fence, id string) string { return "objects/" + fence + "/" + id }

// reserve declares an object.
func (w *Walk) reserve(fence, id string, declared body) Answer {
	if declared == nil {
		declared = body{}
	}
	return w.Worker("PUT", object(fence, id), declared)
}

// upload sends bytes as a worker does that knows nothing of S3: the method, the URL and the headers that it was told.
func (w *Walk) upload(reserved Answer, content string) (status int) {
	var told struct{ Upload signed }
	if err := json.Unmarshal(reserved.Body, &told); err != nil {
		w.Stop("the reservation cannot be read: %v", err)
	}
	status, _ = w.put(told.Upload, content)
	return status
}

// signed is a presigned request, as an answer tells it.
type signed struct {
	Method, URL string
	Headers     map[string]string
}

// put sends a presigned request.
func (w *Walk) put(told signed, content string) (status int, etag string) {
	request, err := w.request(told.Method, told.URL, strings.NewReader(content))
	if err != nil {
		w.Stop("the upload URL: %v", err)
	}
	for name, value := range told.Headers {
		request.Header.Set(name, value)
	}
	response, err := w.client.Do(request)
	if err != nil {
		w.Stop("upload: %v", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // the status is what counts
	return response.StatusCode, response.Header.Get("ETag")
}

// stage reserves an object and uploads its bytes.
func (w *Walk) stage(fence, id, content string) {
	reserved := w.Want(w.reserve(fence, id, body{"content_type": "text/csv"}), 201)
	if status := w.upload(reserved, content); status != 200 {
		w.Stop("upload of %s: %d", id, status)
	}
}

// publish asks for a publication.
func (w *Walk) publish(key string, asked body) Answer {
	return w.Worker("POST", "publications", asked, "Idempotency-Key", key)
}

// published makes version 1 of the report, and returns the fence of its lease, which is a7 and lives.
func (w *Walk) published(content string) (fence string) {
	fence = w.grant("a7")
	w.stage(fence, "o1", content)
	w.Want(w.publish("k1", body{"fence": fence, "object_id": "o1"}), 201)
	return fence
}

// superseded makes versions 1 and 2, of two objects under one grant.
func (w *Walk) superseded() (fence string) {
	fence = w.published("first")
	w.stage(fence, "o2", "second")
	w.Want(w.publish("k2", body{"fence": fence, "object_id": "o2", "expected_version": 1}), 201)
	return fence
}

// withdrawn makes a version 1 that shows nothing.
func (w *Walk) withdrawn() (fence string) {
	fence = w.grant("a7")
	w.Want(w.publish("k1", body{"fence": fence, "withdraw": true}), 201)
	return fence
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
