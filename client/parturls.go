package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// partsAPage is of how many parts one answer has the URLs.
const partsAPage = 1000

// partURLs has the URLs of an object's parts, and asks for them as they are needed.
type partURLs struct {
	k        *Capability
	request  ReserveRequest
	partSize int64
	count    int

	mu    sync.Mutex
	pages map[int]*urlPage // by their places, from 0
}

// urlPage is the URLs of one answer.
type urlPage struct {
	urls map[int]UploadURL // by the numbers of their parts
	end  instant           // when they expire, by the clock here
}

// of is the URL of a part, and the page that it is from: another than expired, if the
// storage has refused the URL from there.
func (u *partURLs) of(ctx context.Context, number int, expired *urlPage) (UploadURL, *urlPage, error) {
	u.mu.Lock() // all wait for the one who asks, and use what it is told
	defer u.mu.Unlock()
	place := (number - 1) / partsAPage
	page := u.pages[place]
	if page == nil || page == expired || u.over(page) {
		fresh, err := u.ask(ctx, place)
		if err != nil {
			return UploadURL{}, nil, err
		}
		page = fresh
		u.pages[place] = page
	}
	to, ok := page.urls[number]
	if !ok {
		return UploadURL{}, nil, invalid(u.op(), "the service names no URL for part %d", number)
	}
	return to, page, nil
}

// over tells whether the URLs of a page have expired. A storage says so with a refusal,
// which is lost where it cuts the connection in the middle of a part.
func (u *partURLs) over(page *urlPage) bool { return u.k.client.now().until(page.end) <= 0 }

func (u *partURLs) op() string {
	return opName("reserve", "object "+u.request.ObjectID, u.k.granted.Report)
}

// ask reserves the object, or again, for the URLs of a page.
func (u *partURLs) ask(ctx context.Context, place int) (*urlPage, error) {
	if err := checkIDs(u.op(), "object", u.request.ObjectID); err != nil {
		return nil, err
	}
	type multipart struct {
		PartSize int64 `json:"part_size"`
	}
	request := call{
		op: u.op(), method: http.MethodPut, path: u.k.objectPath(u.request.ObjectID), mutating: true,
		body: struct {
			Declaration
			Multipart multipart `json:"multipart"`
		}{u.request.Declaration, multipart{u.partSize}},
	}
	if place > 0 {
		first := place*partsAPage + 1
		request.query = url.Values{"parts": {fmt.Sprintf("%d-%d", first, min(first+partsAPage-1, u.count))}}
	}
	got, answered, err := exchange[struct {
		Upload struct {
			ExpiresAt time.Time `json:"expires_at"`
			Parts     []struct {
				Number int `json:"number"`
				UploadURL
			} `json:"parts"`
		} `json:"upload"`
	}](ctx, u.k.client, request)
	if err == nil || errors.Is(err, ErrOutcomeUnknown) {
		u.k.stages(u.request.ObjectID)
	}
	if err != nil {
		return nil, u.k.judge(err)
	}
	life := time.Until(got.Upload.ExpiresAt)
	if date, err := http.ParseTime(answered.header.Get("Date")); err == nil {
		life = got.Upload.ExpiresAt.Sub(date) // the clock here may be wrong
	}
	page := &urlPage{
		urls: make(map[int]UploadURL, len(got.Upload.Parts)),
		end:  answered.sentAt.plus(life - time.Second), // that header has whole seconds
	}
	for _, part := range got.Upload.Parts {
		page.urls[part.Number] = part.UploadURL
	}
	return page, nil
}

// withoutParts tells whether err is how a service answers that knows nothing of parts.
func withoutParts(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == "invalid_request" && refused.Field == "multipart"
}
