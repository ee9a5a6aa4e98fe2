/**
 * The envelope of every answer of the bot API, and the only place that writes one.
 *
 *     {"ok":true,"result":...}                         optional "description"
 *     {"ok":false,"error_code":429,"description":"..."} optional "parameters":{"retry_after":3}
 *
 * The HTTP status equals error_code, the Content-Type is `application/json` and nothing else (some clients compare
 * the whole value), "parameters" is left out when empty (some clients cannot read it then). Answers go out on the raw
 * response with one prepared header list, which is the cheapest way node:http has.
 */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { PostboteError } from '../errors.ts'
import { mustClose } from './body.ts'

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

export function errorText(error: PostboteError): string {
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
  if (options.close === true || mustClose(response.req)) headers.push('Connection', 'close')
  sendText(response, error.status, errorText(error), headers)
}

/**
 * A list of updates from slices of the window: each update in wire form with a comma before it, of which the first
 * is left out. Written as they are, in one go and without a copy.
 */
export function sendList(response: ServerResponse, slices: readonly Buffer[]): void {
  if (isOver(response)) return
  let bytes = listHead.length - 1 + listTail.length
  for (const slice of slices) bytes += slice.length
  response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', `${bytes}`])
  // Corked by hand: headers and slices leave in one system call, whatever their number. A text that
  // comes first joins the headers.
  response.cork()
  response.write(listHeadText, 'latin1')
  for (const [index, slice] of slices.entries()) {
    response.write(index === 0 ? slice.subarray(1) : slice)
  }
  response.end(listTailText, 'latin1')
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
  response.writeHead(status, [
    'Content-Type',
    'application/json',
    'Content-Length',
    `${Buffer.byteLength(text)}`,
    ...moreHeaders,
  ])
  response.end(text)
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

/** What node:http emits as 'clientError': a request that never became one. */
interface ClientError extends Error {
  readonly code?: string
  /** The parser's words; holds nothing of the request. */
  readonly reason?: string
}

/** node:http keeps the response under way on its socket, and offers no other way to ask for it. */
type ClientSocket = Duplex & { readonly _httpMessage?: { readonly headersSent?: boolean } | null }

/** The handler of an http.Server's 'clientError': answers in the envelope where an answer can still be read. */
export function answerClientError(error: ClientError, socket: ClientSocket): void {
  // A response under way on this socket would be cut in two by another one.
  const { _httpMessage: underWay } = socket
  const hasBegun = underWay?.headersSent === true
  if (error.code !== 'ECONNRESET' && socket.writable && !hasBegun) {
    socket.end(clientErrorReply(error))
    // end() leaves the reading half open, and the client may go on sending.
    socket.once('finish', () => socket.destroy())
    return
  }
  socket.destroy()
}

/** The bytes of the whole response to broken HTTP, oversized headers (431) or a request that takes too long (408). */
export function clientErrorReply(error: ClientError): Buffer {
  return rawReply(clientErrorOf(error))
}

/** A whole response for a socket that no http.Server has taken. */
export function rawReply(error: PostboteError): Buffer {
  const body = errorText(error)
  const retryAfterS = retryAfterOf(error)
  return Buffer.from(
    [
      `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Error'}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      ...(retryAfterS === undefined ? [] : [`Retry-After: ${retryAfterS}`]),
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  )
}

function clientErrorOf(error: ClientError): PostboteError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new PostboteError('HEADERS_TOO_LARGE')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new PostboteError('REQUEST_TIMEOUT')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new PostboteError('REQUEST_TOO_LARGE', { detail: 'the chunk extensions are too long' })
    case undefined:
    default:
      return brokenHttp(error)
  }
}

function brokenHttp({ reason }: ClientError): PostboteError {
  const detail = `broken HTTP${reason === undefined ? '' : `: ${reason}`}`
  return new PostboteError('BAD_REQUEST', { detail })
}
