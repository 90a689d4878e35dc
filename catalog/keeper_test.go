package catalog_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// The periods of a keeper. The clock goes on by steps of three hours, so that nothing of it falls together with a step.
const (
	step    = 3 * time.Hour
	short   = 10 * time.Hour // retention
	long    = 25 * time.Hour
	grace   = 4 * time.Hour
	forever = 1 << 20 * time.Hour
)

// keeper is a desk with a storage and a collector.
type keeper struct {
	desk
	storage   *testbucket.Bucket
	objects   *staging.Area
	collector *gc.Collector
}

func newKeeper(t *testing.T) keeper {
	t.Helper()
	db := testdb.New(t)
	k := keeper{storage: testbucket.New(t)}
	bucket := k.storage.Open(t)
	k.objects = staging.New(db.Pool, bucket, staging.Config{Retention: time.Hour}) // as stage has it
	k.desk = desk{db: db, Catalog: k.under(t, db, catalog.Config{Retention: short})}
	k.collector = gc.New(db.Pool, bucket, gc.Config{
		PurgeGrace: grace, Tombstones: forever, Log: slog.New(slog.DiscardHandler),
	})
	k.defaults(t, catalog.Config{Retention: short})
	return k
}

// under is a catalog as another configuration makes it.
func (k keeper) under(t *testing.T, db *testdb.DB, cfg catalog.Config) *catalog.Catalog {
	cfg.RetentionAbove, cfg.RetentionBelow, cfg.PurgeGrace = time.Hour, forever, grace
	return catalog.New(db.Pool, func(ctx context.Context, name fencing.ObjectName) error {
		k.storage.Put(t, keyOf(name), string(name.Object))
		_, err := k.objects.Seal(ctx, name)
		return err
	}, cfg)
}

// defaults makes those of a configuration the service's.
func (k keeper) defaults(t *testing.T, cfg catalog.Config) {
	t.Helper()
	c := k.under(t, k.db, cfg)
	if _, err := c.SetDefaults(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantErr(t, catalog.SettleDefaults(t.Context(), k.db.Pool), nil)
}

// collect runs a pass.
func (k keeper) collect(t *testing.T) {
	t.Helper()
	if err := k.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (k keeper) pass(ctx context.Context) error {
	pass, err := k.collector.Begin(ctx, gc.Options{By: "test"})
	if err != nil {
		return err
	}
	return pass.Run(ctx)
}

// next publishes a new object as july's version given, which follows the one before it.
func (k keeper) next(t *testing.T, f fencing.Fence, id fencing.ObjectID, version int64) {
	t.Helper()
	k.stage(t, "july", f, string(id))
	k.applied(t, object(f, id, string(id), expecting(version-1)), version)
}

// change changes july's settings.
func (k keeper) change(t *testing.T, set func(catalog.Changes)) catalog.Settings {
	t.Helper()
	changes := catalog.Changes{}
	set(changes)
	settings, err := k.ChangeSettings(t.Context(), "july", changes)
	if err != nil {
		t.Fatal(err)
	}
	return settings
}

func keeping(n int) func(catalog.Changes) {
	return func(c catalog.Changes) { c.SetKeepVersions(&n) }
}

func retaining(d time.Duration) func(catalog.Changes) {
	return func(c catalog.Changes) { c.SetRetention(&d) }
}

// stands fails the test unless july's object is as told: "kept visible", "due superseded", "condemned erased" …
func (k keeper) stands(t *testing.T, f fencing.Fence, id, want string) {
	t.Helper()
	const query = "SELECT verdict || ' ' || reason FROM explain_object('july', $1, $2, $3)"
	if got := testdb.Value[string](t, k.db, query, f.Epoch, f.Counter, id); got != want {
		t.Errorf("object %q is %s, want %s", id, got, want)
	}
}

// upload puts the bytes of an object that was reserved, and seals it.
func (k keeper) upload(t *testing.T, name fencing.ObjectName) {
	t.Helper()
	k.storage.Put(t, keyOf(name), string(name.Object))
	_, err := k.objects.Seal(t.Context(), name)
	wantErr(t, err, nil)
}

// holds tells whether the storage holds the bytes of an object.
func (k keeper) holds(t *testing.T, name fencing.ObjectName) bool {
	t.Helper()
	return slices.Contains(k.storage.Keys(t), keyOf(name))
}

func keyOf(name fencing.ObjectName) string {
	return "reports/" + string(name.Report) + "/" + name.Fence.String() + "/" + string(name.Object)
}
