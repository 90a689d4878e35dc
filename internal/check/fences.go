package check

// fenceRules are the promises about the fences under which versions were published. The order of events is
// told by the times that were written down under the lock of the report.
func fenceRules() []rule {
	return append(fencesInOrder(), fencesNotOvertaken()...)
}

// fencesInOrder say that versions follow the order of the grants.
func fencesInOrder() []rule {
	return []rule{
		{
			"G2", "the fences of publications never fall",
			`SELECT report_id, format('version %s was published under %s.%s after a publish under %s.%s',
			                          version, fence_epoch, fence_counter, before_epoch, before_counter) AS says,
			        ARRAY[to_jsonb(p)::text] AS evidence
			 FROM (SELECT *, lag(fence_epoch) OVER w AS before_epoch, lag(fence_counter) OVER w AS before_counter
			       FROM publication
			       WINDOW w AS (PARTITION BY report_id ORDER BY version)) p
			 WHERE (fence_epoch, fence_counter) < (before_epoch, before_counter)`,
		},
		{
			// The records of ended leases are forgotten, the oldest first: while that of a smaller fence is
			// there, so must this one's be.
			"G2", "a publication's fence was granted before it",
			`SELECT p.report_id, format('version %s was published under %s.%s, which was %s', p.version,
			                            p.fence_epoch, p.fence_counter,
			                            CASE WHEN l.lease_id IS NULL THEN 'never granted' ELSE 'granted later' END) AS says,
			        array_remove(ARRAY[to_jsonb(p)::text, to_jsonb(l)::text], NULL) AS evidence
			 FROM publication p
			 JOIN report r USING (report_id)
			 LEFT JOIN lease l USING (report_id, fence_epoch, fence_counter)
			 WHERE (p.fence_epoch, p.fence_counter) > (r.granted_epoch, r.granted_counter)
			    OR l.granted_at > p.published_at
			    OR l.lease_id IS NULL AND EXISTS (
			           SELECT FROM lease o
			           WHERE o.report_id = p.report_id AND (o.fence_epoch, o.fence_counter) < (p.fence_epoch, p.fence_counter))`,
		},
	}
}

// fencesNotOvertaken say that nothing was published under a fence that was no longer good for it.
func fencesNotOvertaken() []rule {
	return []rule{
		{
			"G2", "nothing is published under a fence once a greater one was granted",
			`SELECT p.report_id, format('version %s was published under %s.%s although %s.%s had been granted', p.version,
			                            p.fence_epoch, p.fence_counter, l.fence_epoch, l.fence_counter) AS says,
			        ARRAY[to_jsonb(p)::text, to_jsonb(l)::text] AS evidence
			 FROM publication p
			 JOIN report r USING (report_id)
			 CROSS JOIN LATERAL (
			     SELECT * FROM lease
			     WHERE report_id = p.report_id AND granted_at < p.published_at
			       AND (fence_epoch, fence_counter) > (p.fence_epoch, p.fence_counter)
			     ORDER BY granted_at LIMIT 1) l
			 WHERE coalesce(r.fencing, 'granted') <> 'accepted'`,
		},
		{
			"G3", "what one grant staged and never published is not published under another",
			`SELECT report_id, format('version %s, under %s.%s, shows an object of %s.%s that no version before it shows', version,
			                          fence_epoch, fence_counter, object_epoch, object_counter) AS says,
			        ARRAY[to_jsonb(p)::text] AS evidence
			 FROM publication p
			 WHERE (object_epoch, object_counter) <> (fence_epoch, fence_counter) AND NOT EXISTS (
			     SELECT FROM publication q
			     WHERE q.report_id = p.report_id AND q.version < p.version
			       AND (q.object_epoch, q.object_counter, q.object_id) = (p.object_epoch, p.object_counter, p.object_id))`,
		},
		{
			"G2", "nothing is published under a revoked fence",
			`SELECT p.report_id, format('version %s was published under %s.%s, and %s.%s had been revoked', p.version,
			                            p.fence_epoch, p.fence_counter, r.barred_epoch, r.barred_counter) AS says,
			        ARRAY[to_jsonb(p)::text, to_jsonb(r)::text] AS evidence
			 FROM publication p
			 JOIN report r USING (report_id)
			 WHERE (p.fence_epoch, p.fence_counter) <= (r.barred_epoch, r.barred_counter) AND p.published_at > r.barred_at`,
		},
	}
}
