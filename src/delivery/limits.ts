/** The fixed bounds of webhooks that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */
import { parameterBytesMax } from '../kit/limits.ts'

/**
 * This many addresses of a webhook's name are used, and as many TLS sessions kept. Chosen: a usual name has a few; a name
 * server may send hundreds.
 */
export const webhookAddressesMax = 32
/**
 * A connection to a webhook, with its TLS handshake, may take this long. Chosen: a lost SYN is repeated after 1, 3 and 7
 * s, so three losses are survived.
 */
export const webhookConnectTimeoutMs = 10_000
/**
 * Writing a delivery, and receiving its complete response, may take this long: frameworks such as aiogram hold a request
 * for up to 55 s and rely on 60 s.
 */
export const webhookResponseTimeoutMs = 60_000
/** A webhook's response that may name a method is read up to this size: as many parameters as a call may have. */
export const webhookReplyBytesMax = parameterBytesMax
/** The outcomes and response times of this many minutes are kept: 3,120 bytes for each webhook with deliveries. */
export const deliveryHistoryMinutes = 60
/** A failure that is longer ago says nothing about the health of a webhook now, unless nothing has succeeded since. */
export const webhookHealthRecentMs = 15 * 60_000
/**
 * This many failures without a success in between are no accident. Chosen: fewer may be a restart of the endpoint; more
 * would report a failing webhook later.
 */
export const webhookFailingMin = 3
/**
 * A webhook url may have this many characters. Chosen: usual urls are far shorter; the url is in memory and on disk for
 * every webhook.
 */
export const webhookUrlLengthMax = 2_048
