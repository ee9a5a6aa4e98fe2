/**
 * The envelope of every answer of the bot API, and the only place that writes one (cluster/connection/raw-answer.ts
 * takes it from here for connections without a request).
 *
 *     {"ok":true,"result":...}                         optional "description"
 *     {"ok":false,"error_code":429,"description":"..."} optional "parameters":{"retry_after":3}
 *
 * The HTTP status equals error_code, the Content-Type is `application/json` and nothing else (some clients compare
 * the whole value), "parameters" is left out when empty (some clients cannot read it then). Answers go out on the raw
 * response with one prepared header list, which is the cheapest way node:http has.
 */
import type { ServerResponse } from 'node:http'
import type { PostboteError } from '../errors.ts'
import { mustClose } from '../http/body.ts'
import { endWithList, endWithText } from './end-with-list.ts'

/** What stands around the updates of a list: an answer is head, some slices, tail. */
const listHeadText = '{"ok":true,"result":['
const listTailText = ']}'
export const listHead = Buffer.from(listHeadText)
export const listTail = Buffer.from(listTailText)

const emptyList = '{"ok":true,"result":[]}'

/** The envelope around a result that is JSON text already. */
export function resultText(result: string, description?: string): string {
  return description === undefined
    ? `{"ok":true,"result":${result}}`
    : `{"ok":true,"result":${result},"description":${JSON.stringify(description)}}`
}

export function errorReplyText(error: PostboteError): string {
  const description = JSON.stringify(error.message)
  const retryAfterS = retryAfterOf(error)
  const parameters = retryAfterS === undefined ? '' : `,"parameters":{"retry_after":${retryAfterS}}`
  return `{"ok":false,"error_code":${error.status},"description":${description}${parameters}}`
}

export function sendResult(response: ServerResponse, result: string, description?: string): void {
  sendText(response, 200, resultText(result, description))
}

/** The answer of a poll that has nothing to give. */
export function sendEmptyList(response: ServerResponse): void {
  sendText(response, 200, emptyList)
}

/**
 * Answers with an expected error; anything else is a bug for the caller to log and to turn into INTERNAL first.
 * `close` ends the connection behind it, as does a request whose body was left unread.
 */
export function sendError(
  response: ServerResponse,
  error: PostboteError,
  options: { readonly close?: boolean } = {},
): void {
  const headers: string[] = []
  const retryAfterS = retryAfterOf(error)
  if (retryAfterS !== undefined) headers.push('Retry-After', `${retryAfterS}`)
  if (error.code === 'VERB_NOT_ALLOWED') headers.push('Allow', 'GET, POST')
  if (options.close === true || mustClose(response.req)) headers.push('Connection', 'close')
  sendText(response, error.status, errorReplyText(error), headers)
}

/**
 * A list of updates from slices of the window: each update in wire form with a comma before it, of which the first
 * is left out.
 */
export function sendList(response: ServerResponse, slices: readonly Buffer[]): void {
  if (isOver(response)) return
  const [first, ...rest] = slices
  const listed = first === undefined ? slices : [first.subarray(1), ...rest]
  let slicesBytes = 0
  for (const slice of listed) slicesBytes += slice.length
  const bytes = listHeadText.length + slicesBytes + listTailText.length
  response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', `${bytes}`])
  endWithList(response, { head: listHeadText, slices: listed, tail: listTailText, slicesBytes })
}

/** A body that was compressed with gzip, for a client that offered it. */
export function sendGzipped(response: ServerResponse, body: Uint8Array): void {
  if (isOver(response)) return
  response.writeHead(200, [
    'Content-Type',
    'application/json',
    'Content-Encoding',
    'gzip',
    'Content-Length',
    `${body.byteLength}`,
  ])
  response.end(body)
}

function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  moreHeaders: readonly string[] = [],
): void {
  if (isOver(response)) return
  const bytes = Buffer.byteLength(text)
  response.writeHead(status, [
    'Content-Type',
    'application/json',
    'Content-Length',
    `${bytes}`,
    ...moreHeaders,
  ])
  // As many bytes as characters: all ASCII, which is written faster so.
  endWithText(response, text, bytes === text.length ? 'latin1' : 'utf8')
}

/** The client is gone, or was answered already. */
function isOver(response: ServerResponse): boolean {
  return response.headersSent || response.destroyed
}

/** A 429 always says when to come back. */
function retryAfterOf(error: PostboteError): number | undefined {
  if (error.retryAfterS !== undefined) return Math.max(Math.ceil(error.retryAfterS), 1)
  return error.status === 429 ? 1 : undefined
}
