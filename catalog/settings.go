package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// Mode says what a publish's fence is compared with.
type Mode string

// The modes of fencing.
const (
	Granted  Mode = "granted"  // with the highest granted: a successor's grant alone bars what is older
	Accepted Mode = "accepted" // with the highest applied: the first to publish wins
	Live     Mode = "live"     // as granted, and the lease must be live in the same transaction
)

// PublishesPerGrant says how often one grant may publish.
type PublishesPerGrant string

// How often one grant may publish.
const (
	Many PublishesPerGrant = "many"
	One  PublishesPerGrant = "one"
)

// Settings are what a report is under.
type Settings struct {
	Fencing           Mode
	PublishesPerGrant PublishesPerGrant
	Retention         time.Duration // of a version's object, once nothing else keeps it
	KeepVersions      int           // beyond the visible one, the newest that show an object

	// Own names the settings that are the report's own, by their names on the wire; the others are the service's.
	Own []string
}

// MostKeptVersions is the greatest KeepVersions.
const MostKeptVersions = 1000

// ErrInvalidSetting reports that a setting has a value that it cannot have.
var ErrInvalidSetting = errors.New("the setting cannot have this value")

// SettingError says which setting, by its name on the wire, and what it takes. It is ErrInvalidSetting.
type SettingError struct{ Name, Takes string }

// Error tells both.
func (e *SettingError) Error() string { return e.Name + " must be " + e.Takes }

// Is makes it ErrInvalidSetting.
func (e *SettingError) Is(target error) bool { return target == ErrInvalidSetting }

// Changes names the settings that are to change. A nil value gives a setting back to the service's default.
type Changes map[string]any

// The names of the settings, on the wire and in the database.
const (
	settingFencing           = "fencing"
	settingPublishesPerGrant = "publishes_per_grant"
	settingRetention         = "retention_ms"
	settingKeepVersions      = "keep_versions"
)

// SetFencing changes the mode; nil is the service's.
func (c Changes) SetFencing(m *Mode) { c[settingFencing] = m }

// SetPublishesPerGrant changes how often one grant may publish; nil is the service's.
func (c Changes) SetPublishesPerGrant(p *PublishesPerGrant) { c[settingPublishesPerGrant] = p }

// SetRetention changes the retention; nil is the service's.
func (c Changes) SetRetention(d *time.Duration) {
	if d == nil {
		c[settingRetention] = nil
		return
	}
	c[settingRetention] = d.Milliseconds()
}

// SetKeepVersions changes how many versions are kept; nil is the service's.
func (c Changes) SetKeepVersions(n *int) { c[settingKeepVersions] = n }

// Settings reads the settings of a report. Errors: fencing.ErrReportNotFound, database.ErrUnavailable.
func (c *Catalog) Settings(ctx context.Context, report fencing.ReportID) (Settings, error) {
	const query = `
		SELECT s.fencing, s.publishes_per_grant, s.retention_ms, s.keep_versions,
		       array_remove(ARRAY[
		           CASE WHEN r.fencing IS NOT NULL THEN 'fencing' END,
		           CASE WHEN r.publishes_per_grant IS NOT NULL THEN 'publishes_per_grant' END,
		           CASE WHEN r.retention_ms IS NOT NULL THEN 'retention_ms' END,
		           CASE WHEN r.keep_versions IS NOT NULL THEN 'keep_versions' END], NULL) AS own
		FROM report r
		CROSS JOIN settings_of(r) s
		WHERE r.report_id = @report`
	type row struct {
		Fencing           Mode
		PublishesPerGrant PublishesPerGrant
		RetentionMS       int64
		KeepVersions      int
		Own               []string
	}
	got, found, err := database.Row[row](ctx, c.pool, query, pgx.NamedArgs{"report": report})
	if err == nil && !found {
		err = fencing.ErrReportNotFound
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings of %q: %w", report, err)
	}
	return Settings{
		Fencing: got.Fencing, PublishesPerGrant: got.PublishesPerGrant,
		Retention: time.Duration(got.RetentionMS) * time.Millisecond, KeepVersions: got.KeepVersions, Own: got.Own,
	}, nil
}

// ChangeSettings changes settings of a report, creates it where it is missing, and returns what it is under
// then. What is kept, and for how long, follows at once. Errors: ErrInvalidSetting (*SettingError),
// fencing.ErrFrozen, database.ErrUnavailable.
func (c *Catalog) ChangeSettings(ctx context.Context, report fencing.ReportID, changes Changes) (Settings, error) {
	err := c.checkChanges(changes)
	if err == nil {
		err = c.changeSettings(ctx, report, changes)
	}
	if err != nil {
		return Settings{}, fmt.Errorf("change the settings of %q: %w", report, err)
	}
	settings, err := c.Settings(ctx, report)
	if errors.Is(err, database.ErrUnavailable) { // the change was made
		err = &database.UnavailableError{Outcome: database.Unknown, Cause: err}
	}
	return settings, err
}

func (c *Catalog) changeSettings(ctx context.Context, report fencing.ReportID, changes Changes) error {
	const query = `SELECT status FROM change_settings(@report, @changes)`
	type answer struct{ Status string }
	text, err := json.Marshal(changes)
	if err != nil {
		return fmt.Errorf("encode the changes: %w", err)
	}
	got, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{"report": report, "changes": string(text)})
	if err != nil {
		return err
	}
	if got.Status != "changed" {
		return statusError(got.Status)
	}
	return nil
}

func (c *Catalog) checkChanges(changes Changes) error {
	if m, ok := changes[settingFencing].(*Mode); ok && m != nil && *m != Granted && *m != Accepted && *m != Live {
		return &SettingError{settingFencing, "granted, accepted or live"}
	}
	if p, ok := changes[settingPublishesPerGrant].(*PublishesPerGrant); ok && p != nil && *p != Many && *p != One {
		return &SettingError{settingPublishesPerGrant, "many or one"}
	}
	if n, ok := changes[settingKeepVersions].(*int); ok && n != nil && (*n < 0 || *n > MostKeptVersions) {
		return &SettingError{settingKeepVersions, fmt.Sprintf("from 0 to %d", MostKeptVersions)}
	}
	if ms, ok := changes[settingRetention].(int64); ok {
		retention := time.Duration(ms) * time.Millisecond
		if retention <= c.cfg.RetentionAbove || retention >= c.cfg.RetentionBelow {
			return &SettingError{settingRetention, fmt.Sprintf("above %d and below %d, between the service's restore window and its tombstones",
				c.cfg.RetentionAbove.Milliseconds(), c.cfg.RetentionBelow.Milliseconds())}
		}
	}
	return nil
}
