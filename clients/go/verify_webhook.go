package postbote

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// webhookTolerance is how much the timestamp may differ from the clock, as Standard Webhooks advises.
const webhookTolerance = 5 * time.Minute

// signaturesMax is how many signatures are looked at. The server sends four at most.
const signaturesMax = 16

// VerifyWebhookOptions are the options of VerifyWebhook. A field with its zero value has the default.
type VerifyWebhookOptions struct {
	// Tolerance is how much the timestamp may differ from the clock. Default: 5 minutes.
	Tolerance time.Duration
	// Now is the time. Default: that of the system.
	Now time.Time
}

// errSecret does not show the secret, because it may be most of a right one.
var errSecret = errors.New("postbote: expected secrets of the form whsec_... or whpk_... with a key in base64")

// VerifyWebhook returns whether a delivery to a webhook was signed with one of the secrets (Standard Webhooks), for this body,
// within the tolerance. The body is the bytes as they came. A secret is whsec_... (HMAC-SHA256) or whpk_... (ed25519); there are
// several while keys are rotated. Whatever a stranger sends, the result is false without an error; only unusable secrets are an
// error. Options may be nil.
func VerifyWebhook(header http.Header, body []byte, secrets []string, options *VerifyWebhookOptions) (bool, error) {
	checks := make([]func(signed []byte, signature string) bool, 0, len(secrets))
	for _, secret := range secrets {
		check := checkOf(secret)
		if check == nil {
			return false, errSecret
		}
		checks = append(checks, check)
	}
	if len(checks) == 0 {
		return false, errSecret
	}
	given := VerifyWebhookOptions{}
	if options != nil {
		given = *options
	}
	id, sent := headerValues(header, "webhook-id"), headerValues(header, "webhook-timestamp")
	if len(id) != 1 || len(sent) != 1 || !isNow(sent[0], given) {
		return false, nil
	}
	signed := append([]byte(id[0]+"."+sent[0]+"."), body...)
	signatures := strings.SplitN(strings.Join(headerValues(header, "webhook-signature"), " "), " ", signaturesMax+1)
	for at, signature := range signatures {
		for _, check := range checks {
			if at < signaturesMax && check(signed, signature) {
				return true, nil
			}
		}
	}
	return false, nil
}

// headerValues finds names in any case: a map that was made by hand may have them as they are.
func headerValues(header http.Header, name string) []string {
	var values []string
	for each, own := range header {
		if strings.EqualFold(each, name) {
			values = append(values, own...)
		}
	}
	return values
}

func isNow(sent string, options VerifyWebhookOptions) bool {
	if len(sent) > 12 || strings.Trim(sent, "0123456789") != "" {
		return false
	}
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if err != nil {
		return false
	}
	now, tolerance := options.Now, options.Tolerance
	if now.IsZero() {
		now = time.Now()
	}
	if tolerance == 0 {
		tolerance = webhookTolerance
	}
	at := time.Unix(seconds, 0)
	return !now.Before(at.Add(-tolerance)) && !now.After(at.Add(tolerance))
}

// checkOf returns nil for a secret that cannot be used.
func checkOf(secret string) func(signed []byte, signature string) bool {
	secret = strings.TrimSpace(secret)
	if text := strings.TrimPrefix(secret, "whsec_"); text != secret {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) == 0 {
			return nil
		}
		return func(signed []byte, signature string) bool {
			mac := hmac.New(sha256.New, key)
			mac.Write(signed)
			expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
			return hmac.Equal([]byte(signature), []byte(expected))
		}
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whpk_"))
	if err != nil || len(key) != ed25519.PublicKeySize || !strings.HasPrefix(secret, "whpk_") {
		return nil
	}
	return func(signed []byte, signature string) bool {
		text := strings.TrimPrefix(signature, "v1a,")
		given, err := base64.StdEncoding.DecodeString(text)
		return err == nil && text != signature && len(given) == ed25519.SignatureSize && ed25519.Verify(key, signed, given)
	}
}
