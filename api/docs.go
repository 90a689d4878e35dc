package api

import (
	"io/fs"

	"github.com/labstack/echo/v4"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5/static"
	"github.com/swaggest/swgui/v5emb"
)

// docsPolicy lets the page load nothing that is not the service's own.
const docsPolicy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// docsPage makes the handler of /docs: the OpenAPI document as a page on which it can be tried out, with all that
// the page is made of.
func docsPage() echo.HandlerFunc {
	page := v5emb.NewHandlerWithConfig(swgui.Config{
		Title: "Fenceline", SwaggerJSON: "/openapi.yaml", BasePath: "/docs", ShowTopBar: false,
		SettingsUI: map[string]string{"validatorUrl": "null"}, // the document is sent to nobody
	})
	return func(c echo.Context) error {
		if asset := c.Param("asset"); asset != "" && !isAsset(asset) {
			return echo.ErrNotFound
		}
		header := c.Response().Header()
		header.Set("Content-Security-Policy", docsPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		page.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}

// isAsset tells whether the page has a file of this name; most are stored compressed.
func isAsset(name string) bool {
	for _, file := range []string{name, name + ".gz"} {
		if _, err := fs.Stat(static.FS, file); err == nil {
			return true
		}
	}
	return false
}
