package api

import (
	"net/http"
	"time"

	"github.com/fenceline/fenceline/internal/metrics"
	"github.com/fenceline/fenceline/staging"
)

// maxPartsBytes bounds the body that names 10 000 parts with their ETags, in place of maxBodyBytes.
const maxPartsBytes = 2 << 20

// longestWaiting bounds the requests that wait for a lease to end or a report to change.
const longestWaiting = longestWait + 30*time.Second

// domainRoutes are the routes of the contract, each a method of the part that it belongs to.
func (s *Server) domainRoutes() []route {
	const (
		report      = "/v1/reports/:report"
		lease       = report + "/leases/:lease_id"
		object      = report + "/objects/:fence/:object_id"
		publication = report + "/publications/:version"
	)
	return []route{
		{Method: http.MethodPut, Path: lease, Role: RoleWorker, Mutates: true, Waits: true, Limit: longestWaiting, Counted: metrics.Acquire, Handler: s.acquireLease},
		{Method: http.MethodPost, Path: lease + "/renew", Role: RoleWorker, Mutates: true, Counted: metrics.Renew, Handler: s.renewLease},
		{Method: http.MethodDelete, Path: lease, Role: RoleWorker, Mutates: true, Counted: metrics.Release, Handler: s.releaseLease},
		{Method: http.MethodGet, Path: lease, Role: RoleWorker, Handler: s.getLease},
		{Method: http.MethodGet, Path: report + "/leases", Role: RoleWorker, Query: pageQuery(), Handler: s.listLeases},
		{Method: http.MethodGet, Path: report + "/lease", Role: RoleWorker, Handler: s.getLiveLease},
		{Method: http.MethodPost, Path: report + "/lease/revoke", Role: RoleOperator, Mutates: true, Handler: s.revokeLease},

		{Method: http.MethodPut, Path: object, Role: RoleWorker, Mutates: true, Query: []string{"parts"}, Handler: s.reserveObject},
		{Method: http.MethodPost, Path: object + "/seal", Role: RoleWorker, Mutates: true, Limit: staging.LongestSeal, Body: maxPartsBytes, Handler: s.sealObject},
		{Method: http.MethodGet, Path: object, Role: RoleWorker, Handler: s.getObject},
		{Method: http.MethodGet, Path: report + "/objects", Role: RoleWorker, Query: pageQuery("state", "object_id"), Handler: s.listObjects},
		{Method: http.MethodDelete, Path: object, Role: RoleWorker, Mutates: true, Handler: s.discardObject},

		{Method: http.MethodPost, Path: report + "/publications", Role: RoleWorker, Mutates: true, Limit: staging.LongestSeal, Counted: metrics.Publish, Handler: s.publish},
		{Method: http.MethodGet, Path: report + "/publications", Role: RoleReader, Query: pageQuery("idempotency_key"), Handler: s.listPublications},
		{Method: http.MethodPut, Path: publication + "/hold", Role: RoleOperator, Mutates: true, Handler: s.holdVersion},
		{Method: http.MethodDelete, Path: publication + "/hold", Role: RoleOperator, Mutates: true, Handler: s.unholdVersion},
		{Method: http.MethodPost, Path: publication + "/erase", Role: RoleOperator, Mutates: true, Handler: s.eraseVersion},
		{Method: http.MethodGet, Path: publication, Role: RoleReader, Handler: s.getPublication},
		{Method: http.MethodGet, Path: publication + "/content", Role: RoleReader, Streams: true, Handler: s.getVersionContent},

		{Method: http.MethodGet, Path: "/v1/reports", Role: RoleReader, Query: pageQuery("prefix"), Handler: s.listReports},
		{Method: http.MethodGet, Path: report, Role: RoleReader, Limit: longestWaiting, Query: []string{"presign", "wait_ms"}, Handler: s.getReport},
		{Method: http.MethodGet, Path: report + "/content", Role: RoleReader, Streams: true, Handler: s.getContent},

		{Method: http.MethodGet, Path: report + "/settings", Role: RoleOperator, Handler: s.getSettings},
		{Method: http.MethodPatch, Path: report + "/settings", Role: RoleOperator, Mutates: true, Handler: s.changeSettings},
		{Method: http.MethodGet, Path: report + "/refusals", Role: RoleOperator, Query: pageQuery(), Handler: s.listRefusals},
		{Method: http.MethodPost, Path: "/v1/freeze", Role: RoleOperator, Mutates: true, Handler: s.freeze},
		{Method: http.MethodPost, Path: "/v1/unfreeze", Role: RoleOperator, Mutates: true, Handler: s.unfreeze},

		{Method: http.MethodPost, Path: "/v1/gc/pause", Role: RoleOperator, Whole: true, Mutates: true, Handler: s.pauseCollector},
		{Method: http.MethodPost, Path: "/v1/gc/resume", Role: RoleOperator, Whole: true, Mutates: true, Handler: s.resumeCollector},
		{Method: http.MethodPost, Path: "/v1/gc/runs", Role: RoleOperator, Whole: true, Mutates: true, Handler: s.startRun},
		{Method: http.MethodGet, Path: "/v1/gc/runs", Role: RoleOperator, Query: pageQuery(), Handler: s.listRuns},
		{Method: http.MethodGet, Path: "/v1/gc/runs/:run_id", Role: RoleOperator, Handler: s.getRun},
		{Method: http.MethodPost, Path: "/v1/gc/runs/:run_id/approve", Role: RoleOperator, Whole: true, Mutates: true, Handler: s.approveRun},
		{Method: http.MethodGet, Path: "/v1/gc/runs/:run_id/objects", Role: RoleOperator, Query: pageQuery("action"), Handler: s.listRunObjects},

		{Method: http.MethodPost, Path: "/v1/verifications", Role: RoleOperator, Whole: true, Mutates: true, Handler: s.startVerification},
		{Method: http.MethodGet, Path: "/v1/verifications", Role: RoleOperator, Query: pageQuery(), Handler: s.listVerifications},
		{Method: http.MethodGet, Path: "/v1/verifications/:verification_id", Role: RoleOperator, Handler: s.getVerification},
		{Method: http.MethodGet, Path: "/v1/verifications/:verification_id/findings", Role: RoleOperator, Query: pageQuery(), Handler: s.listFindings},

		{Method: http.MethodGet, Path: "/v1/epoch", Role: RoleOperator, Handler: s.getEpoch},
		{Method: http.MethodPost, Path: "/v1/epoch", Role: RoleOperator, Whole: true, Mutates: true, Handler: s.advanceEpoch},
		{Method: http.MethodGet, Path: "/v1/status", Role: RoleOperator, Handler: s.getStatus},
	}
}
