package collect

import (
	"encoding/json"
	"slices"
	"time"
)

// Result is what came of it.
type Result struct {
	Objects int `json:"objects"` // that were due
	Kept    int `json:"kept"`    // that were not, in the same folders
	Foreign int `json:"foreign"`
	Unknown int `json:"unknown"`
	// Recorded is how many of the unknown keys have got a row.
	Recorded int `json:"recorded"`

	Prepared     Took    `json:"prepared_ms"`
	DiskDatabase int64   `json:"disk_database_bytes"`
	ListedBefore Listing `json:"listed_before"`
	ListedAfter  Listing `json:"listed_after"`

	Collected Took    `json:"collected_ms"` // from the first start to the last end
	Passes    int     `json:"passes"`
	Phases    []Phase `json:"phases"`
	Kills     []Kill  `json:"kills"`
	PeakRSS   int64   `json:"peak_rss_bytes"`
	PeakHeap  int64   `json:"peak_heap_bytes"` // what is in no file: heap, and the runtime's own
	Tables    []Table `json:"tables"`

	Quiet   Latencies `json:"publish_quiet"`  // before the collector began
	During  Latencies `json:"publish_during"` // while it worked
	Failed  int       `json:"publish_failed"`
	Checked int       `json:"versions_checked"`

	Samples []Sample `json:"samples"` // one a second

	Broken []string `json:"broken"` // what is not as it must be
}

// Took is a time that is written in milliseconds.
type Took time.Duration

// MarshalJSON writes the milliseconds.
func (t Took) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(t).Milliseconds()) }

// String is the time to a hundredth of a second.
func (t Took) String() string { return time.Duration(t).Round(10 * time.Millisecond).String() }

func since(began time.Time) Took { return Took(time.Since(began)) }

// Listing is how long it took to list how much.
type Listing struct {
	Keys int  `json:"keys"`
	Took Took `json:"took_ms"`
}

// Phase is how fast one phase went, over all passes, without the time in which no collector ran.
type Phase struct {
	Name      string    `json:"name"`
	PerSecond float64   `json:"per_second"`
	Tenths    []float64 `json:"tenths_per_second"`
	Edge      int       `json:"edge"` // so many objects are the first and the last
	First     float64   `json:"first_per_second"`
	Last      float64   `json:"last_per_second"`
}

// Ratio is the rate of the last objects to that of the first.
func (p Phase) Ratio() float64 { return p.Last / p.First }

// Sample is how it was at one time.
type Sample struct {
	At        Took  `json:"at_ms"` // since the first start
	Condemned int64 `json:"condemned"`
	Deleted   int64 `json:"deleted"`
	RSS       int64 `json:"rss_bytes"` // of the collector that ran last
	Heap      int64 `json:"heap_bytes"`
	Published int   `json:"published"` // since the sample before
	Slowest   Took  `json:"slowest_publish_ms"`
}

// Kill is one of the collector.
type Kill struct {
	Condemned int64 `json:"condemned"` // by then
	Deleted   int64 `json:"deleted"`
	Begun     Took  `json:"begun_ms"` // until the next pass had begun
	Moved     Took  `json:"moved_ms"` // until that had done something
}

// Table is what became of a table meanwhile.
type Table struct {
	Name      string `json:"name"`
	PeakBytes int64  `json:"peak_bytes"` // with its indexes
	PeakDead  int64  `json:"peak_dead_rows"`
	Vacuums   int64  `json:"autovacuums"`
}

// Latencies are of publishes.
type Latencies struct {
	N   int  `json:"n"`
	P50 Took `json:"p50_ms"`
	P99 Took `json:"p99_ms"`
	Max Took `json:"max_ms"`
}

func latenciesOf(all []time.Duration) Latencies {
	if len(all) == 0 {
		return Latencies{}
	}
	slices.Sort(all)
	at := func(share float64) Took { return Took(all[int(share*float64(len(all)-1))]) }
	return Latencies{N: len(all), P50: at(0.5), P99: at(0.99), Max: at(1)}
}
