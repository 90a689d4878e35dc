package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/verify"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// rule says how one error is answered.
type rule struct {
	is     error // matched with errors.Is
	status int
	code   string
	detail string // a sentence for people

	// fill adds what the error knows, such as extension members or an outcome.
	fill func(err error, p *problem)
}

// rules is THE table from error to status and code. The first row that matches
// answers; what matches none is 500 `internal`.
func rules() []rule {
	return []rule{
		{is: ErrUnauthenticated, status: http.StatusUnauthorized, code: "unauthenticated", detail: "Send a valid API key as bearer token, or as the password of HTTP Basic.", fill: challenge},
		{is: echo.ErrNotFound, status: http.StatusNotFound, code: "not_found", detail: "There is nothing at this address."},
		{is: echo.ErrMethodNotAllowed, status: http.StatusMethodNotAllowed, code: "method_not_allowed", detail: "This address does not know the method; the Allow header lists those that it does."},

		{is: fencing.ErrReportNotFound, status: http.StatusNotFound, code: "report_not_found", detail: "There is no such report: it comes into being with its first lease, release or setting."},
		{is: fencing.ErrStaleFence, status: http.StatusConflict, code: "stale_fence", detail: "The work was done under a grant that has been overtaken: nothing was changed. Start anew under a new lease.", fill: bothFences},
		{is: fencing.ErrNotGranted, status: http.StatusConflict, code: "fence_not_granted", detail: "The fence is above every one that was ever granted for the report.", fill: grantedFence},
		{is: fencing.ErrFrozen, status: http.StatusConflict, code: "frozen", detail: "The report only resolves for now: an operator has frozen it."},
		{is: fencing.ErrLeaseNotLive, status: http.StatusConflict, code: "lease_not_live", detail: "The report takes changes only while the fence's lease is live, and it is not."},
		{is: fencing.ErrObjectNotFound, status: http.StatusNotFound, code: "object_not_found", detail: "There is no such object under this fence."},
		{is: fencing.ErrObjectGone, status: http.StatusGone, code: "object_gone", detail: "The object was condemned or collected, and cannot come back."},

		{is: lease.ErrBusy, status: http.StatusConflict, code: "busy", detail: "Another lease of the report is live.", fill: holder},
		{is: lease.ErrTooManyWaiting, status: http.StatusTooManyRequests, code: "rate_limited", detail: "Too many requests wait for leases here.", fill: retrySoon},
		{is: lease.ErrWaitEnded, status: http.StatusServiceUnavailable, code: "unavailable", detail: "The wait for the lease was cut short before anything was asked: send the same request again.", fill: nothingAsked},
		{is: lease.ErrLost, status: http.StatusGone, code: "lease_lost", detail: "The lease has ended and stays ended: choose a new lease id.", fill: lostReason},
		{is: lease.ErrIDReused, status: http.StatusUnprocessableEntity, code: "lease_id_reused", detail: "The lease id is known with another holder or ttl: choose a new one for each grant."},
		{is: lease.ErrCounterExhausted, status: http.StatusConflict, code: "counter_exhausted", detail: "The report's counter has reached its end: the operator advances the epoch."},
		{is: lease.ErrEpochMismatch, status: http.StatusConflict, code: "epoch_mismatch", detail: "The present epoch is not the expected one.", fill: bothEpochs},
		{is: lease.ErrNotFound, status: http.StatusNotFound, code: "lease_not_found", detail: "There is no such lease, or none that is live."},

		{is: staging.ErrIDReused, status: http.StatusUnprocessableEntity, code: "object_id_reused", detail: "The object id is known under this fence with another declaration: choose a new one."},
		{is: staging.ErrExists, status: http.StatusConflict, code: "object_exists", detail: "The object is sealed already, or was condemned: nothing more can be uploaded to it."},
		{is: staging.ErrPartsWrong, status: http.StatusConflict, code: "object_incomplete", detail: "Parts of the object are missing, or their ETags are not those that the storage answered."},
		{is: staging.ErrPartsNeeded, status: http.StatusConflict, code: "object_incomplete", detail: "The object is uploaded in parts: seal it first, with its parts."},
		{is: staging.ErrIncomplete, status: http.StatusConflict, code: "object_incomplete", detail: "The object's bytes have not been uploaded yet."},
		{is: staging.ErrNotInParts, status: http.StatusBadRequest, code: "invalid_request", detail: "The object is not uploaded in parts.", fill: partsField},
		{is: staging.ErrMismatch, status: http.StatusUnprocessableEntity, code: "object_mismatch", detail: "The object's bytes are not the declared ones: upload them under a new object id.", fill: bothBytes},
		{is: staging.ErrInUse, status: http.StatusConflict, code: "object_in_use", detail: "The object was published."},
		{is: staging.ErrDamaged, status: http.StatusBadGateway, code: "object_damaged", detail: "The bytes in the storage are not those that were published."},
		{is: staging.ErrStorageUnavailable, status: http.StatusServiceUnavailable, code: "unavailable", detail: "The storage cannot be reached at the moment.", fill: storageOutcome},

		{is: catalog.ErrKeyReused, status: http.StatusUnprocessableEntity, code: "idempotency_key_reused", detail: "The idempotency key was applied with another request of this report."},
		{is: catalog.ErrGrantAlreadyUsed, status: http.StatusConflict, code: "grant_already_used", detail: "The report takes one publish a grant, and this grant has had it."},
		{is: catalog.ErrExpectedVersionRequired, status: http.StatusPreconditionRequired, code: "expected_version_required", detail: "This fence has published already: say with expected_version which version the next publish follows."},
		{is: catalog.ErrVersionConflict, status: http.StatusPreconditionFailed, code: "version_conflict", detail: "The present version is not the expected one.", fill: bothVersions},
		{is: catalog.ErrVersionNotFound, status: http.StatusNotFound, code: "version_not_found", detail: "The report has no such version."},
		{is: catalog.ErrErased, status: http.StatusGone, code: "erased", detail: "The bytes of this version were erased."},
		{is: catalog.ErrVersionInUse, status: http.StatusConflict, code: "object_in_use", detail: "A version that shows the object is visible or held."},
		{is: catalog.ErrInvalidSetting, status: http.StatusBadRequest, code: "invalid_request", detail: "The setting cannot have this value.", fill: setting},
		{is: catalog.ErrTooManyWatching, status: http.StatusTooManyRequests, code: "rate_limited", detail: "Too many requests wait for reports to change here.", fill: retrySoon},
		{is: catalog.ErrNotPublished, status: http.StatusNotFound, code: "not_published", detail: "Nothing was published for the report yet."},
		{is: catalog.ErrWithdrawn, status: http.StatusGone, code: "withdrawn", detail: "The report is withdrawn.", fill: withdrawal},

		{is: gc.ErrAlreadyRunning, status: http.StatusConflict, code: "already_running", detail: "A pass of the collector is under way.", fill: runUnderWay},
		{is: gc.ErrPaused, status: http.StatusConflict, code: "paused", detail: "The collector is paused: POST /v1/gc/resume lets it go on."},
		{is: gc.ErrRunNotFound, status: http.StatusNotFound, code: "run_not_found", detail: "There is no such run of the collector, or its record was forgotten."},
		{is: gc.ErrNothingHeldBack, status: http.StatusConflict, code: "nothing_held_back", detail: "The run holds nothing back, so that there is nothing to approve."},

		{is: verify.ErrAlreadyRunning, status: http.StatusConflict, code: "already_running", detail: "A verification of this kind is under way.", fill: verificationUnderWay},
		{is: verify.ErrNotFound, status: http.StatusNotFound, code: "verification_not_found", detail: "There is no such verification, or its record was forgotten."},

		{is: database.ErrUnavailable, status: http.StatusServiceUnavailable, code: "unavailable", detail: "The database cannot decide at the moment.", fill: knownOutcome},
		{is: context.DeadlineExceeded, status: http.StatusServiceUnavailable, code: "unavailable", detail: "The work took longer than the service allows for one request.", fill: retrySoon},
		{is: context.Canceled, status: http.StatusServiceUnavailable, code: "unavailable", detail: "The request was interrupted.", fill: retrySoon},
	}
}

// problemOf finds the problem that answers err.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	for _, r := range rules() {
		if !errors.Is(err, r.is) {
			continue
		}
		p := newProblem(r.status, r.code, r.detail).because(err)
		if r.fill != nil {
			r.fill(err, p)
		}
		return p
	}
	return newProblem(http.StatusInternalServerError, "internal",
		"Something went wrong inside the service. The request id finds it in the log.").because(err)
}

// challenge names the schemes that the service understands (RFC 9110).
func challenge(_ error, p *problem) {
	p.withHeader(echo.HeaderWWWAuthenticate, `Bearer realm="fenceline"`)
	p.withHeader(echo.HeaderWWWAuthenticate, `Basic realm="fenceline", charset="UTF-8"`)
}

func bothFences(err error, p *problem) {
	if e, ok := errors.AsType[*fencing.StaleError](err); ok {
		p.with("presented", e.Presented).with("highest", e.Highest).with("reason", e.Reason)
		switch e.Reason {
		case "revoked":
			p.Detail = "An operator has barred this fence: nothing was changed. Start anew under a new lease."
		case "epoch_closed":
			p.Detail = "The epoch of this fence was closed: nothing was changed. Start anew under a new lease."
		}
	}
}

func grantedFence(err error, p *problem) {
	if e, ok := errors.AsType[*fencing.NotGrantedError](err); ok {
		p.with("presented", orNull(e.Presented)).with("granted", orNull(e.Granted))
	}
}

func holder(err error, p *problem) {
	if e, ok := errors.AsType[*lease.BusyError](err); ok {
		p.with("holder", e.Holder).with("retry_after_ms", e.RetryAfter.Milliseconds())
		retryAfter(p, e.RetryAfter)
	}
}

func lostReason(err error, p *problem) {
	if e, ok := errors.AsType[*lease.LostError](err); ok {
		p.with("reason", e.Reason)
	}
}

func bothEpochs(err error, p *problem) {
	if e, ok := errors.AsType[*lease.EpochMismatchError](err); ok {
		p.with("expected", e.Expected).with("actual", e.Actual)
	}
}

func bothBytes(err error, p *problem) {
	if e, ok := errors.AsType[*staging.MismatchError](err); ok {
		p.with("expected", measureOf(e.Expected)).with("actual", measureOf(e.Actual))
	}
}

func partsField(_ error, p *problem) { p.with("field", "parts") }

func bothVersions(err error, p *problem) {
	if e, ok := errors.AsType[*catalog.VersionConflictError](err); ok {
		p.with("expected", e.Expected).with("actual", e.Actual)
	}
}

func setting(err error, p *problem) {
	if e, ok := errors.AsType[*catalog.SettingError](err); ok {
		p.with("field", e.Name)
		p.Detail = e.Error() + "."
	}
}

func withdrawal(err error, p *problem) {
	if e, ok := errors.AsType[*catalog.WithdrawnError](err); ok {
		p.with("version", e.Version).withHeader("ETag", versionTag(e.Version, e.Fence))
	}
}

func runUnderWay(err error, p *problem) {
	if e, ok := errors.AsType[*gc.AlreadyRunningError](err); ok {
		p.with("run_id", e.RunID)
	}
}

func verificationUnderWay(err error, p *problem) {
	if e, ok := errors.AsType[*verify.AlreadyRunningError](err); ok {
		p.with("verification_id", e.VerificationID)
	}
}

// knownOutcome tells what is known of the change that could not be confirmed.
func knownOutcome(err error, p *problem) {
	retrySoon(err, p)
	if e, ok := errors.AsType[*database.UnavailableError](err); ok && e.Outcome == database.Unknown {
		p.withOutcome(outcomeUnknown)
		p.Detail = "The database did not answer in time whether the change was made. Send the same request again to find out."
		return
	}
	p.withOutcome(outcomeNotApplied)
}

// storageOutcome tells that nothing was changed, since the storage is asked before a change, unless the error
// says that it was asked behind one.
func storageOutcome(err error, p *problem) {
	retrySoon(err, p)
	p.withOutcome(outcomeNotApplied)
	if e, ok := errors.AsType[*database.UnavailableError](err); ok && e.Outcome == database.Unknown {
		p.withOutcome(outcomeUnknown)
	}
}

// nothingAsked tells that the request had not come as far as a change.
func nothingAsked(err error, p *problem) {
	retrySoon(err, p)
	p.withOutcome(outcomeNotApplied)
}

// retrySoon asks for another try in a second.
func retrySoon(_ error, p *problem) { retryAfter(p, time.Second) }

// retryAfter rounds up: the header knows whole seconds only.
func retryAfter(p *problem, d time.Duration) {
	p.withHeader(echo.HeaderRetryAfter, strconv.Itoa(max(1, int(math.Ceil(d.Seconds())))))
}
