package check

// objectRules are the promises about the rows of objects; their bytes are another matter.
func objectRules() []rule {
	return []rule{
		{
			"G5", "a visible object is sealed, and kept without limit",
			`SELECT r.report_id, format('the object of version %s is %s%s', r.version, coalesce(o.state, 'missing'),
			                            CASE WHEN o.eligible_at IS NOT NULL THEN ', and will be due' ELSE '' END) AS says,
			        array_remove(ARRAY[to_jsonb(r)::text, to_jsonb(o)::text], NULL) AS evidence
			 FROM report r
			 LEFT JOIN object o ON (o.report_id, o.fence_epoch, o.fence_counter, o.object_id)
			                     = (r.report_id, r.visible_epoch, r.visible_counter, r.visible_object_id)
			 WHERE r.visible_object_id IS NOT NULL
			   AND (o.state IS DISTINCT FROM 'sealed' OR o.eligible_at IS NOT NULL)`,
		},
		{
			"G5", "nothing is condemned while it is visible",
			`SELECT p.report_id, format('the object of version %s was condemned while that was the newest version', p.version) AS says,
			        ARRAY[to_jsonb(p)::text, to_jsonb(o)::text] AS evidence
			 FROM (SELECT *, lead(published_at) OVER (PARTITION BY report_id ORDER BY version) AS superseded_at
			       FROM publication) p
			 JOIN object o ON (o.report_id, o.fence_epoch, o.fence_counter, o.object_id)
			                = (p.report_id, p.object_epoch, p.object_counter, p.object_id)
			 WHERE o.condemned_at >= p.published_at AND (p.superseded_at IS NULL OR o.condemned_at < p.superseded_at)`,
		},
		{
			"G5", "a version's receipt is that of the object it shows",
			`SELECT p.report_id, format('version %s tells another key, size or digest than its object', p.version) AS says,
			        ARRAY[to_jsonb(p)::text, to_jsonb(o)::text] AS evidence
			 FROM publication p
			 JOIN object o ON (o.report_id, o.fence_epoch, o.fence_counter, o.object_id)
			                = (p.report_id, p.object_epoch, p.object_counter, p.object_id)
			 WHERE (p.object_key, p.size, p.sha256) IS DISTINCT FROM (o.key, o.size, o.sha256)`,
		},
	}
}

// endRules are the promises that nothing is kept for ever.
func endRules() []rule {
	return []rule{
		{
			"G6", "what no version keeps has a time from which it may be collected",
			`SELECT o.report_id, format('the object %s is %s, neither visible nor held nor of a kept version, and kept without limit', o.key, o.state) AS says,
			        ARRAY[to_jsonb(o)::text, to_jsonb(r)::text] AS evidence
			 FROM object o
			 JOIN report r USING (report_id)
			 CROSS JOIN service_default d
			 WHERE o.state IN ('reserved', 'sealed') AND o.eligible_at IS NULL
			   AND (o.fence_epoch, o.fence_counter, o.object_id)
			       IS DISTINCT FROM (r.visible_epoch, r.visible_counter, r.visible_object_id)
			   AND NOT EXISTS (
			       SELECT FROM (
			           SELECT p.*, row_number() OVER (ORDER BY version DESC) AS behind
			           FROM publication p
			           WHERE p.report_id = o.report_id AND p.version < r.version AND p.object_id IS NOT NULL
			       ) p
			       WHERE (p.object_epoch, p.object_counter, p.object_id) = (o.fence_epoch, o.fence_counter, o.object_id)
			         AND (p.held_at IS NOT NULL OR p.behind <= coalesce(r.keep_versions, d.keep_versions)))`,
		},
		{
			"G6", "what is due is collected",
			`SELECT o.report_id, format('the object %s is %s, and was due at %s', o.key, o.state,
			                            CASE o.state WHEN 'condemned' THEN o.purge_after ELSE o.eligible_at END) AS says,
			        ARRAY[to_jsonb(o)::text] AS evidence
			 FROM object o
			 WHERE o.state IN ('reserved', 'sealed') AND o.eligible_at < fenceline_now() - @slack::interval
			    OR o.state = 'condemned' AND o.purge_after < fenceline_now() - @slack::interval`,
		},
	}
}
