package metrics

import "github.com/prometheus/client_golang/prometheus"

// StorageResult is how a call of the storage ended.
type StorageResult string

// The results of a call of the storage.
const (
	StorageOK                 StorageResult = "ok"
	StorageNotFound           StorageResult = "not_found"
	StoragePreconditionFailed StorageResult = "precondition_failed"
	StorageThrottled          StorageResult = "throttled"
	StorageTimeout            StorageResult = "timeout"
	StorageInterrupted        StorageResult = "interrupted" // by this process: nobody waits for it any more, or it must not be sent
	StorageError              StorageResult = "error"
)

// declareStorage declares what is known of the calls of the storage.
func (m *Metrics) declareStorage() {
	m.storageCalls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fenceline_storage_calls_total",
		Help: "Calls of the storage, all attempts of one together. Signing a URL is none. Each start races 20 creates of one key, of which 19 are to end as precondition_failed.",
	}, []string{"operation", "result"})
	for _, operation := range []string{
		"AbortMultipartUpload", "CompleteMultipartUpload", "CreateMultipartUpload", "DeleteObjects", "GetBucketVersioning", "GetObject", "HeadObject",
		"ListMultipartUploads", "ListObjectVersions", "ListObjectsV2", "PutObject",
	} {
		for _, result := range []StorageResult{
			StorageOK, StorageNotFound, StoragePreconditionFailed, StorageThrottled, StorageTimeout, StorageInterrupted, StorageError,
		} {
			m.storageCalls.WithLabelValues(operation, string(result))
		}
	}
	m.storageTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "fenceline_storage_call_duration_seconds",
		Help:    "Time that a call of the storage took, with all its attempts; of GetObject until the bytes begin to come.",
		Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90},
	}, []string{"operation"})
	m.registry.MustRegister(m.storageCalls, m.storageTime)
}

// actionDeleted is what the collector calls an object whose bytes are gone.
const actionDeleted = "deleted"

// declareCollector declares what is known of the passes that this process runs.
func (m *Metrics) declareCollector() {
	m.collected = m.counters("fenceline_collector_objects_total",
		"Objects that passes of this process handled; dry runs do not count. What is put off and what could not be deleted counts anew in each pass.",
		"action", "condemned", "put_off", "braked", actionDeleted, "delete_failed", "found", "aborted")
	m.collectedBytes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "fenceline_collector_deleted_bytes_total",
		Help: "Bytes of the objects that passes of this process deleted.",
	})
	m.passes = m.counters("fenceline_collector_passes_total",
		"Passes of this process that have ended; dry runs do not count.", "outcome", "completed", "failed", "paused", "time_limit", "stopped")
	m.registry.MustRegister(m.collectedBytes)
}
