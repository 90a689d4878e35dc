package api

import (
	"crypto/rand"
	"strings"

	"github.com/labstack/echo/v4"
)

const headerRequestID = "X-Request-Id"

// requestID gives every answer an X-Request-Id: the caller's, where it is fit
// to be logged, else a new one.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(headerRequestID)
		if !fitRequestID(id) {
			id = rand.Text()
		}
		c.Response().Header().Set(headerRequestID, id)
		return next(c)
	}
}

// requestIDOf is the id that the answer carries.
func requestIDOf(c echo.Context) string {
	return c.Response().Header().Get(headerRequestID)
}

// idCharacters may stand in a request's id.
const idCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

func fitRequestID(id string) bool {
	return len(id) >= 1 && len(id) <= 128 && strings.Trim(id, idCharacters) == ""
}
