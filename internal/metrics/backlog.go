package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
)

// Backlog is what the collector has not done, whichever instance was to do it.
type Backlog struct {
	ReportOnly bool  // it waits for an operator to let it begin
	HeldBack   int64 // objects that the brake holds back
	Stuck      int64 // objects that could not be deleted in ten attempts
	Oldest     time.Duration
	// Overdue counts the objects that should have gone longer ago than that.
	Overdue map[time.Duration]int64
}

// backlogTimeout bounds the counting, which takes the longer the more there is to count.
const backlogTimeout = 5 * time.Second

// backlog asks the database at a scrape, apart from [databaseState]: that the counting takes too long does not mean that the
// database is away. While it is not known, it is absent.
type backlog struct {
	ask func(context.Context) (Backlog, error)
	one singleflight.Group // so that scrapes take one connection at most, however many there are

	reportOnly, heldBack, stuck, oldest, overdue *prometheus.Desc
}

func newBacklog(ask func(context.Context) (Backlog, error)) *backlog {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &backlog{
		ask: ask,
		reportOnly: desc("fenceline_collector_report_only",
			"1 while the collector of a new installation only reports what it would do, until an operator approves."),
		heldBack: desc("fenceline_collector_held_back_objects",
			"Objects that the collector's brake holds back until an operator approves."),
		stuck: desc("fenceline_collector_stuck_objects",
			"Condemned objects that could not be deleted in ten attempts and more."),
		oldest: desc("fenceline_collector_oldest_overdue_seconds",
			"How long ago the first of the objects that are still there should have gone; 0 if there is none."),
		overdue: desc("fenceline_collector_overdue_objects",
			"Objects that should have gone longer ago than that, and are still there.", "older_than"),
	}
}

// Describe implements prometheus.Collector.
func (b *backlog) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.reportOnly, b.heldBack, b.stuck, b.oldest, b.overdue} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (b *backlog) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	answer, err, _ := b.one.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
		defer cancel()
		return b.ask(ctx)
	})
	if err != nil {
		return
	}
	got := answer.(Backlog)
	gauge(b.reportOnly, map[bool]float64{true: 1}[got.ReportOnly])
	gauge(b.heldBack, float64(got.HeldBack))
	gauge(b.stuck, float64(got.Stuck))
	gauge(b.oldest, got.Oldest.Seconds())
	for age, objects := range got.Overdue {
		gauge(b.overdue, float64(objects), fmt.Sprintf("%dh", int(age.Hours())))
	}
}
