package check

// versionRules are the promises about the sequence of a report's versions.
func versionRules() []rule {
	return []rule{
		{
			"G4", "the versions of a report are 1 to n without gaps",
			`SELECT report_id, format('version %s follows version %s', version, before) AS says,
			        ARRAY[to_jsonb(p)::text] AS evidence
			 FROM (SELECT *, lag(version, 1, 0::bigint) OVER (PARTITION BY report_id ORDER BY version) AS before
			       FROM publication) p
			 WHERE version <> before + 1`,
		},
		{
			"G5", "a report shows its newest publication",
			`SELECT r.report_id, format('it is at version %s, its newest publication is version %s',
			                            r.version, coalesce(p.version, 0)) AS says,
			        array_remove(ARRAY[to_jsonb(r)::text, to_jsonb(p)::text], NULL) AS evidence
			 FROM report r
			 LEFT JOIN LATERAL (SELECT * FROM publication WHERE report_id = r.report_id ORDER BY version DESC LIMIT 1) p ON true
			 WHERE (r.version, r.visible_epoch, r.visible_counter, r.visible_object_id, r.accepted_epoch, r.accepted_counter)
			       IS DISTINCT FROM
			       (coalesce(p.version, 0), p.object_epoch, p.object_counter, p.object_id,
			        coalesce(p.fence_epoch, 0), coalesce(p.fence_counter, 0))`,
		},
		{
			"G4", "one version comes of an idempotency key",
			`SELECT report_id, format('the key %s made %s versions', idempotency_key, count(*)) AS says,
			        array_agg(to_jsonb(p)::text ORDER BY version) AS evidence
			 FROM publication p
			 GROUP BY report_id, idempotency_key
			 HAVING count(*) > 1`,
		},
	}
}
