// Package docs holds those pages of the documentation that programs read too.
package docs

import _ "embed" // for the pages

// Contract is the page of the contract, as Markdown.
//
//go:embed contract.md
var Contract string
