/**
 * Reads the answer of an origin to getUpdates. An update stays as the origin wrote it, byte for byte, without its id:
 *
 *   {"ok":true,"result":[{"update_id":7,"message":{...}}, ...]}
 *                                       ^-------------^ the update, between braces
 *
 * Only what is around the updates is parsed. An origin may send megabytes of brackets, which take JSON.parse seconds and a
 * gigabyte, and each update is checked before it is stored. A broken update may hide others from the scan, but none is lost:
 * the next poll asks for all ids after it again.
 */
import { parseRetryAfter } from '../../delivery/pace/retry.ts'
import { checkedRow } from '../../queue/check/check-batch.ts'
import { findMember, skipSpace, skipString, skipValue } from '../../queue/check/json-scan.ts'
import { kib } from '../../kit/limits.ts'
import { relayAnswerBytesMax, relayBatchMax } from './limits.ts'
import type { OriginAnswer, OriginFailure, OriginUpdate, UpdateVerdict } from './origin.ts'

/** An answer as it came. */
export interface RawAnswer {
  readonly status: number
  /** The beginning, if the answer is too large. */
  readonly body: Buffer
  /** Whether there is more, and one update was asked for. */
  readonly isCut?: true
  /** The header. */
  readonly retryAfter: string | undefined
  /** Wall time in milliseconds. */
  readonly nowMs: number
}

/** An answer may have this many bytes beside its updates. Chosen: an error of the reference has some hundred. */
const relayFrameBytesMax = 64 * kib

/** Where an update is in a body. */
interface UpdatePlace extends Pick<OriginUpdate, 'updateId' | 'verdict' | 'isCut'> {
  readonly start: number
  readonly end: number
  /** The place of the member beside the id, if it is the only one. */
  readonly only: readonly [start: number, end: number] | undefined
}

/** What an answer has, without its bytes, so that it passes cheaply between threads. */
export type PlacedAnswer =
  | { readonly places: readonly UpdatePlace[] }
  | { readonly failure: OriginFailure }

/** Reads an answer, and checks its updates. Never throws: whatever an origin sends is either updates or a failure. */
export function placeAnswer(answer: RawAnswer): PlacedAnswer {
  if (answer.status !== 200) return { failure: failureOf(answer) }
  if (answer.isCut === true) {
    const place = placeInCut(answer.body)
    return place === undefined ? { failure: tooLarge } : { places: [place] }
  }
  const places = placesIn(answer.body)
  return places === undefined ? { failure: noAnswer } : { places }
}

/** Returns what `placeAnswer` has found in a body. */
export function answerIn(placed: PlacedAnswer, body: Buffer): OriginAnswer {
  if ('failure' in placed) return placed
  const updates = placed.places.map(({ start, end, only, ...of }) => ({
    ...of,
    raw: body.subarray(start, end),
    update: only === undefined ? undefined : braced(body.subarray(...only)),
  }))
  return { updates }
}

/** Does both at once. */
export function readOriginAnswer(answer: RawAnswer): OriginAnswer {
  return answerIn(placeAnswer(answer), answer.body)
}

/**
 * Reads the beginning of an answer with one update that is too large.
 *
 * @param beginning - as much of the body as was read
 * @returns what has arrived of the update, so that it can be skipped; undefined unless its id stands there in full
 */
function placeInCut(beginning: Buffer): UpdatePlace | undefined {
  const open = skipSpace(beginning, 0)
  const ok = findMember(beginning, open, okKey)
  const list = findMember(beginning, open, resultKey)
  if (ok === -1 || beginning.toString('latin1', ok, skipValue(beginning, ok)) !== 'true') {
    return undefined
  }
  if (beginning[list] !== openBracket) return undefined
  const at = skipSpace(beginning, list + 1)
  if (beginning[at] !== openBrace) return undefined
  const raw = beginning.subarray(at)
  const { updateId, end: read = 0 } = membersIn(raw) ?? {}
  // If it ends here, something else is too large.
  if (updateId === undefined || read < raw.length) return undefined
  const end = beginning.length
  return { updateId, start: at, end, only: undefined, verdict: undefined, isCut: true }
}

/** The next poll may ask for fewer updates. */
export const tooLarge: OriginFailure = {
  reason: `The answer of the origin has more than ${relayAnswerBytesMax} bytes`,
  isTooLarge: true,
}

const noAnswer: OriginFailure = {
  reason: 'The origin sent something that is no answer of getUpdates',
}

function failureOf(answer: RawAnswer): OriginFailure {
  const { status, retryAfter, nowMs } = answer
  const said = saidIn(answer.body)
  const header = parseRetryAfter(retryAfter, nowMs)
  if (status === 409) {
    return /webhook/i.test(said.description) ? webhookIsSet : somebodyPolls
  }
  if (status === 401 || status === 404) {
    const reason = `The origin refuses the token (${status}): set the relay again with the token that is valid there`
    return { reason }
  }
  if (status === 429) {
    const asked = said.retryAfterS === undefined ? undefined : `${said.retryAfterS}`
    const retryAfterMs = parseRetryAfter(asked, nowMs) ?? header
    return { reason: 'The origin asks to call less often (429)', retryAfterMs }
  }
  if (status >= 300 && status < 400) {
    return { reason: `The origin redirects (${status}), which is never followed` }
  }
  const failed = { reason: `The origin failed (${status})`, retryAfterMs: header }
  return status >= 500 ? { ...failed, isPassing: true } : failed
}

const webhookIsSet: OriginFailure = {
  reason:
    'A webhook is set at the origin (409), so nobody can poll there: remove it with deleteWebhook at the origin',
}
const somebodyPolls: OriginFailure = {
  reason:
    'Somebody else polls at the origin with this token (409): stop that program, have it use this server, or remove the relay of another bot here that has the same token',
  isOfWaiting: true,
}

function saidIn(body: Buffer): { readonly description: string; readonly retryAfterS?: number } {
  const said = parsed(body)
  if (typeof said !== 'object' || said === null) return { description: '' }
  const description =
    'description' in said && typeof said.description === 'string' ? said.description : ''
  const parameters = 'parameters' in said ? said.parameters : undefined
  if (typeof parameters !== 'object' || parameters === null) return { description }
  const seconds = 'retry_after' in parameters ? parameters.retry_after : undefined
  return Number.isSafeInteger(seconds)
    ? { description, retryAfterS: Number(seconds) }
    : { description }
}

function parsed(body: Buffer): unknown {
  if (body.length > relayFrameBytesMax) return undefined
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

const okKey = Buffer.from('ok')
const resultKey = Buffer.from('result')

/** Returns the places of the updates in ascending order of their ids; undefined if the body is no answer of getUpdates. */
function placesIn(body: Buffer): readonly UpdatePlace[] | undefined {
  const open = findMember(body, skipSpace(body, 0), resultKey)
  if (body[open] !== openBracket) return undefined
  const places: UpdatePlace[] = []
  // The body with a 0 in place of each update.
  const frame: Buffer[] = []
  let framed = 0
  for (let at = skipSpace(body, open + 1); body[at] === openBrace; ) {
    if (places.length === relayBatchMax) return undefined
    const end = skipValue(body, at)
    const place = placeOf(body, at, end)
    if (place === undefined) return undefined
    places.push(place)
    frame.push(body.subarray(framed, at), zero)
    framed = end
    at = skipSpace(body, end)
    if (body[at] === comma) at = skipSpace(body, at + 1)
  }
  frame.push(body.subarray(framed))
  // An element that is no object has ended the scan early.
  if (places.length !== countIn(parsed(Buffer.concat(frame)))) return undefined
  return places.toSorted((a, b) => a.updateId - b.updateId)
}

/** Returns how many updates an answer has; undefined if it is none. */
function countIn(said: unknown): number | undefined {
  if (typeof said !== 'object' || said === null || !('ok' in said) || said.ok !== true) {
    return undefined
  }
  return 'result' in said && Array.isArray(said.result) ? said.result.length : undefined
}

const openBracket = 0x5b
const openBrace = 0x7b
const closeBrace = 0x7d
const quote = 0x22
const comma = 0x2c
const zero = Buffer.from('0')
const idKey = '"update_id"'

function placeOf(body: Buffer, start: number, end: number): UpdatePlace | undefined {
  const raw = body.subarray(start, end)
  const { updateId, only, end: read = 0 } = membersIn(raw) ?? {}
  if (updateId === undefined || raw[read] !== closeBrace) return undefined
  if (only === undefined) return { updateId, start, end, only, verdict: undefined }
  const [from, to] = only
  const verdict = verdictOn(braced(raw.subarray(from, to)))
  return { updateId, start, end, only: [start + from, start + to], verdict }
}

function verdictOn(update: Buffer): UpdateVerdict {
  const row = checkedRow(update)
  const refusal = row.refusalOf(0)
  if (refusal !== undefined) return { reason: refusal.message }
  return { typeNumber: row.typeOf(0), orderingKey: row.orderingKeyOf(0) }
}

function braced(members: Buffer): Buffer {
  return Buffer.concat([before, members, after])
}

interface Members {
  readonly updateId: number | undefined
  /** The place of the member beside the id, if it is the only one. */
  readonly only: UpdatePlace['only']
  /** The position after the members. */
  readonly end: number
}

/** Returns undefined if an update, or the beginning of one, has two ids. */
function membersIn(raw: Buffer): Members | undefined {
  let updateId: number | undefined
  let hasId = false
  let only: UpdatePlace['only']
  let others = 0
  let at = skipSpace(raw, 1)
  while (raw[at] === quote) {
    const keyEnd = skipString(raw, at)
    const value = skipSpace(raw, skipSpace(raw, keyEnd) + 1)
    const end = skipValue(raw, value)
    if (raw.toString('latin1', at, Math.min(keyEnd, at + idKey.length + 1)) === idKey) {
      if (hasId) return undefined
      hasId = true
      const text = raw.toString('latin1', value, Math.min(end, value + idDigitsMax + 1))
      // Where the bytes end, digits may be missing.
      updateId = end < raw.length ? idIn(text) : undefined
    } else {
      only = [at, end]
      others += 1
    }
    at = skipSpace(raw, end)
    if (raw[at] === comma) at = skipSpace(raw, at + 1)
  }
  return { updateId, only: others === 1 ? only : undefined, end: at }
}

const before = Buffer.from('{')
const after = Buffer.from('}')

/** The ids of other servers may be larger than those of this one. */
const idDigitsMax = 15

function idIn(text: string): number | undefined {
  return text.length <= idDigitsMax && /^\d+$/.test(text) ? Number(text) : undefined
}
