package client_test

import (
	"net/http"
	"net/http/httptest"

	"github.com/fenceline/fenceline/client"
)

// exampleService plays a service, and its storage, in which everything goes well.
func exampleService() (_ *client.Client, stop func()) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	july := "/v1/reports/july"
	mux.HandleFunc("PUT "+july+"/leases/{id}", success(http.StatusCreated, `{"result":"acquired","fence":"1.1","remaining_ms":30000}`))
	mux.HandleFunc("DELETE "+july+"/leases/{id}", success(http.StatusOK, `{"result":"released"}`))
	mux.HandleFunc("PUT "+july+"/objects/1.1/july.csv", success(http.StatusCreated,
		`{"object_id":"july.csv","fence":"1.1","state":"reserved","upload":{"method":"PUT","url":"`+server.URL+`/bucket/july.csv"}}`))
	mux.HandleFunc("PUT /bucket/july.csv", ok)
	mux.HandleFunc("POST "+july+"/objects/1.1/july.csv/seal", success(http.StatusOK,
		`{"state":"sealed","size":22,"sha256":"`+exampleDigest+`"}`))
	mux.HandleFunc("POST "+july+"/publications", success(http.StatusCreated, receipt))
	mux.HandleFunc("GET "+july, success(http.StatusOK, receipt))
	mux.HandleFunc("GET "+july+"/content", content("abc", map[string]string{"Repr-Digest": reprDigest}))
	return client.New(client.Config{URL: server.URL}), server.Close
}

// exampleDigest is the SHA-256 of the table in the example.
const exampleDigest = "837242503006bcb36e334912c0312bd8bb76be93ff1e4585e5ad07f2f2551954"
