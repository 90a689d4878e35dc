package check

// leaseRules are the promises about the grants of a report.
func leaseRules() []rule {
	return []rule{
		{
			"G1", "every grant has a greater fence than all before it",
			`SELECT report_id, format('%s.%s was granted after %s.%s', fence_epoch, fence_counter,
			                          before_epoch, before_counter) AS says,
			        ARRAY[to_jsonb(l)::text] AS evidence
			 FROM (SELECT *, lag(fence_epoch) OVER w AS before_epoch, lag(fence_counter) OVER w AS before_counter
			       FROM lease
			       WHERE granted_at IS NOT NULL
			       WINDOW w AS (PARTITION BY report_id ORDER BY granted_at, fence_epoch, fence_counter)) l
			 WHERE (fence_epoch, fence_counter) <= (before_epoch, before_counter)`,
		},
		{
			"G1", "a report remembers the greatest fence that was granted",
			`SELECT r.report_id, format('it remembers %s.%s, and %s.%s was granted', r.granted_epoch, r.granted_counter,
			                            l.fence_epoch, l.fence_counter) AS says,
			        ARRAY[to_jsonb(r)::text, to_jsonb(l)::text] AS evidence
			 FROM report r
			 JOIN lease l USING (report_id)
			 WHERE (l.fence_epoch, l.fence_counter) > (r.granted_epoch, r.granted_counter)`,
		},
		{
			"G1", "the only lease that has not ended is the report's own, under its greatest fence",
			`SELECT l.report_id, format('the lease %s has not ended, and the report''s is %s', l.lease_id,
			                            coalesce(r.lease_id, 'none')) AS says,
			        ARRAY[to_jsonb(l)::text, to_jsonb(r)::text] AS evidence
			 FROM lease l
			 JOIN report r USING (report_id)
			 WHERE l.ended_at IS NULL
			   AND (l.lease_id, l.fence_epoch, l.fence_counter)
			       IS DISTINCT FROM (r.lease_id, r.granted_epoch, r.granted_counter)
			 UNION ALL
			 SELECT r.report_id, format('its lease %s is not on record, or has ended', r.lease_id), ARRAY[to_jsonb(r)::text]
			 FROM report r
			 WHERE r.lease_id IS NOT NULL AND NOT EXISTS (
			     SELECT FROM lease l WHERE (l.report_id, l.lease_id) = (r.report_id, r.lease_id) AND l.ended_at IS NULL)`,
		},
		{
			"G1", "a lease ends before the next one is granted",
			`SELECT report_id, format('the lease %s ended after the next one had been granted', lease_id) AS says,
			        ARRAY[to_jsonb(l)::text] AS evidence
			 FROM (SELECT *, lead(granted_at) OVER (PARTITION BY report_id ORDER BY fence_epoch, fence_counter) AS next_granted_at
			       FROM lease
			       WHERE granted_at IS NOT NULL) l
			 WHERE ended_at > next_granted_at`,
		},
	}
}
