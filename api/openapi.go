package api

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

//go:embed openapi.yaml
var openAPI []byte // the contract for machines; never changed

// OpenAPI is the OpenAPI 3.1 description of the service, as YAML.
func OpenAPI() []byte {
	return append([]byte(nil), openAPI...)
}

func serveOpenAPI(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", openAPI)
}
