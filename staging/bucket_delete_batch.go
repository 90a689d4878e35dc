package staging

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// deleteTogether removes the objects in one request, which carries the SDK's CRC32, or with md5 a Content-MD5 in its place.
func (b *Bucket) deleteTogether(
	ctx context.Context, refs []ObjectRef, md5 bool, beforeSend func(context.Context) error,
) ([]DeleteResult, error) {
	named := make([]types.ObjectIdentifier, len(refs))
	for i, ref := range refs {
		named[i] = types.ObjectIdentifier{Key: aws.String(ref.Key), VersionId: optional(ref.VersionID)}
	}
	options := []func(*s3.Options){afterSigning(beforeSend), leavingThrottles}
	if md5 {
		options = append(options, withContentMD5)
	}
	out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: aws.String(b.name),
		Delete: &types.Delete{Objects: named},
	}, options...)
	if stopped, ok := errors.AsType[*stoppedError](err); ok {
		return nil, fmt.Errorf("delete %d objects: before sending: %w", len(refs), stopped.error)
	}
	if err != nil {
		return nil, fmt.Errorf("delete %d objects: %w", len(refs), storageError(err))
	}
	return deleteResults(refs, out), nil
}

// deleteResults finds the answer for each of refs. A reference that the storage
// passed over in silence counts as not deleted.
func deleteResults(refs []ObjectRef, out *s3.DeleteObjectsOutput) []DeleteResult {
	answers := make(map[ObjectRef]DeleteResult, len(refs))
	for _, d := range out.Deleted {
		ref := ObjectRef{Key: aws.ToString(d.Key), VersionID: aws.ToString(d.VersionId)}
		answers[ref] = DeleteResult{Hidden: aws.ToBool(d.DeleteMarker) && ref.VersionID == ""}
	}
	for _, e := range out.Errors {
		ref := ObjectRef{Key: aws.ToString(e.Key), VersionID: aws.ToString(e.VersionId)}
		err := error(&smithy.GenericAPIError{Code: aws.ToString(e.Code), Message: aws.ToString(e.Message)})
		if isMissing(err) {
			err = nil
		}
		answers[ref] = DeleteResult{Err: storageError(err)}
	}
	results := make([]DeleteResult, len(refs))
	for i, ref := range refs {
		answer, ok := answers[ref]
		if !ok { // some servers leave the version out of their answer
			answer, ok = answers[ObjectRef{Key: ref.Key}]
		}
		if !ok {
			answer.Err = fmt.Errorf("%w: no answer for this key", ErrStorageUnavailable)
		}
		answer.ObjectRef = ref
		answer.Hidden = answer.Hidden && ref.VersionID == "" // else it was the marker that went
		results[i] = answer
	}
	return results
}

// refusesForm tells whether the storage does not know the request, or will not have it in this form: then it has
// deleted nothing, and another form may do. A refusal of the objects, and a fault, are no such thing.
func refusesForm(err error) bool {
	switch statusOf(err) {
	case http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return true
	case http.StatusBadRequest, http.StatusLengthRequired: // see the code
	default:
		return false
	}
	switch codeOf(err) {
	case "MissingContentMD5", "NotImplemented", "MethodNotAllowed", "MalformedXML", "InvalidRequest", "InvalidArgument",
		"InvalidDigest":
		return true
	}
	return false
}

// withContentMD5 has a request carry its digest as all servers knew it before there were other checksums, and no other.
func withContentMD5(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		if _, err := stack.Initialize.Remove("AWSChecksum:SetupInputContext"); err != nil {
			return err
		}
		if _, err := stack.Finalize.Remove("AWSChecksum:ComputeInputPayloadChecksum"); err != nil {
			return err
		}
		return smithyhttp.AddContentChecksumMiddleware(stack)
	})
}

// leavingThrottles keeps a client from trying again by itself what was throttled.
func leavingThrottles(o *s3.Options) {
	o.Retryer = retry.NewStandard(func(standard *retry.StandardOptions) {
		standard.MaxAttempts = maxAttempts
		standard.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			if isThrottled(err) {
				return aws.FalseTernary
			}
			return aws.UnknownTernary
		})}, standard.Retryables...)
	})
}
