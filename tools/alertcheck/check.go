package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// check returns what is wrong with a file of rules. read gives a document by its path from the repository's root.
func check(rules []byte, declared map[string]bool, read func(document string) (string, error)) []string {
	reader := parser.NewParser(parser.Options{})
	groups, faults := rulefmt.Parse(rules, false, model.UTF8Validation, reader, slog.New(slog.DiscardHandler))
	if len(faults) > 0 {
		var mistakes []string
		for _, fault := range faults {
			mistakes = append(mistakes, fmt.Sprintf("Prometheus refuses it: %v", fault))
		}
		return mistakes
	}
	var mistakes []string
	seen := map[string]bool{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				mistakes = append(mistakes, fmt.Sprintf("%s: it is no alert", rule.Record))
				continue
			}
			if seen[rule.Alert] {
				mistakes = append(mistakes, fmt.Sprintf("%s: there are two of this name", rule.Alert))
			}
			seen[rule.Alert] = true
			for _, m := range slices.Concat(seriesMistakes(reader, rule, declared), annotationMistakes(rule, read)) {
				mistakes = append(mistakes, fmt.Sprintf("%s: %s", rule.Alert, m))
			}
		}
	}
	if len(seen) == 0 {
		mistakes = append(mistakes, "there are no alerts in it")
	}
	return mistakes
}

// seriesMistakes tells of the series in a rule's expression that the service does not declare.
func seriesMistakes(reader parser.Parser, rule rulefmt.Rule, declared map[string]bool) []string {
	expression, err := reader.ParseExpr(rule.Expr)
	if err != nil {
		return []string{err.Error()}
	}
	var mistakes []string
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name := selector.Name
		for _, m := range selector.LabelMatchers {
			if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
				name = m.Value
			}
		}
		if !declared[name] {
			mistakes = append(mistakes, fmt.Sprintf("the service has no series %q", name))
		}
		return nil
	})
	return mistakes
}

// annotationMistakes tells what is missing for whoever is woken.
func annotationMistakes(rule rulefmt.Rule, read func(string) (string, error)) []string {
	var mistakes []string
	if rule.Annotations["summary"] == "" {
		mistakes = append(mistakes, "it has no summary")
	}
	if severity := rule.Labels["severity"]; severity != "page" && severity != "ticket" {
		mistakes = append(mistakes, fmt.Sprintf("its severity is %q, neither page nor ticket", severity))
	}
	document, anchor, _ := strings.Cut(rule.Annotations["runbook"], "#")
	if document == "" || anchor == "" {
		return append(mistakes, "it names no section of a runbook")
	}
	text, err := read(document)
	if err != nil {
		return append(mistakes, fmt.Sprintf("its runbook cannot be read: %v", err))
	}
	if !slices.Contains(anchors(text), anchor) {
		mistakes = append(mistakes, fmt.Sprintf("%s has no section #%s", document, anchor))
	}
	return mistakes
}
