/**
 * The envelope of every response of the bot API. Only this file writes it, and the
 * errors of both APIs that no route sends.
 *
 *     {"ok":true,"result":...}                         optional "description"
 *     {"ok":false,"error_code":429,"description":"..."} optional "parameters":{"retry_after":3}
 *
 * The HTTP status equals error_code. The Content-Type is exactly `application/json`, because some clients compare the
 * complete value. Empty "parameters" are left out, because some clients cannot parse them. Responses are written to the
 * raw response with one prepared header list, which is the cheapest way that node:http offers.
 */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { PostboteError } from '../kit/errors.ts'
import { mustClose } from './body.ts'
import { endWithList, endWithText } from './end-with-list.ts'
import type { ListenerKind } from './listener.ts'
import { requestIdHeader, requestIdOf } from './request-id.ts'

/** What surrounds the updates of a list: a response is the head, some slices, and the tail. */
const listHeadText = '{"ok":true,"result":['
const listTailText = ']}'
export const listHead = Buffer.from(listHeadText)
export const listTail = Buffer.from(listTailText)

/** Returns the envelope around a result that already is JSON text. */
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

/**
 * Sends an expected error. For any other error, which is a bug, the caller logs it and converts it to INTERNAL first.
 * `close` ends the connection afterwards, as does a request whose body was left unread.
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
 * Sends a list of updates as slices of the window. Each update has its wire form with a comma before it; the first
 * comma is left out.
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

/** Sends a body that was compressed with gzip, to a client that accepts it. */
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
  // As many bytes as characters means that all are ASCII, which is written faster as Latin-1.
  endWithText(response, text, bytes === text.length ? 'latin1' : 'utf8')
}

/** Whether the client has disconnected or already has its response. */
function isOver(response: ServerResponse): boolean {
  return response.headersSent || response.destroyed
}

/** Returns the seconds for Retry-After. A 429 always has one. */
function retryAfterOf(error: PostboteError): number | undefined {
  if (error.retryAfterS !== undefined) return Math.max(Math.ceil(error.retryAfterS), 1)
  return error.status === 429 ? 1 : undefined
}

/**
 * Returns the bytes of a response that ends its connection, in the form of the listener (protocol.md §3 and 9). No route sends it:
 * the primary has refused the connection, or the HTTP parser cannot read the bytes, or the request was refused before.
 */
export function errorResponse(listener: ListenerKind, error: PostboteError): Buffer {
  const body = errorBody(listener, error)
  const retry = error.retryAfterS === undefined ? '' : `Retry-After: ${error.retryAfterS}\r\n`
  return Buffer.from(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Error'}\r\n` +
      'Content-Type: application/json\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\n${retry}Connection: close\r\n\r\n${body}`,
  )
}

/** Returns the body of a refusal. */
export function errorBody(listener: ListenerKind, error: PostboteError): string {
  return listener === 'private' ? privateErrorText(error) : errorReplyText(error)
}

/** Returns `{"error":{"code":"QUEUE_FULL","message":"..."}}`, as the private API answers. */
export function privateErrorText({ code, message }: PostboteError): string {
  return JSON.stringify({ error: { code, message } })
}

/** Refuses a request before any route has it, and ends its connection. */
export function refusePrivate(response: ServerResponse, error: PostboteError): void {
  const text = privateErrorText(error)
  const headers = ['Content-Type', 'application/json', 'Content-Length', `${text.length}`]
  const retryAfter = ['Retry-After', `${error.retryAfterS ?? 1}`]
  const id = [requestIdHeader, requestIdOf(response.req)]
  response.writeHead(error.status, [...headers, ...retryAfter, ...id, 'Connection', 'close'])
  response.end(text)
}
