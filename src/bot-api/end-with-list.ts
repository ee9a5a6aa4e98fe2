/**
 * Writes whole answers straight to the socket, past the stream that ServerResponse is, and leaves to node:http all
 * that goes before and after: the header text, whose turn it is on a pipelined connection, keep-alive, `finish`.
 * That saves 2 us of the 13 that a request to bare node:http costs; copying a list of 32 KB into one piece another,
 * since one buffer is written at less cost than several are gathered.
 *
 *   writeHead --> response._header --> socket.write(header + body) --> _headerSent --> response.end()
 *
 * The price: `_header` and `_headerSent` are not documented. They have been there since Node 0.4, are what
 * `headersSent` tells, and where either is not as expected the answer goes the documented way.
 *
 * The memory that lists are copied into is used again at once: what the system took in the same turn, as it does
 * almost always, is not looked at any more. Where it did not take all, the memory is left to the socket.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A list that is longer is not copied: gathering costs less then. */
const copiedBytesMax = 64 * 1024

type Encoding = 'latin1' | 'utf8'

interface OpenResponse extends ServerResponse {
  _header?: unknown
  _headerSent?: unknown
}

let scratch = Buffer.alloc(0)

/** Sends the header that `writeHead` has made and `text` behind it. */
export function endWithText(response: ServerResponse, text: string, encoding: Encoding): void {
  const header = headerOf(response)
  const socket = socketOf(response)
  if (header === undefined || socket === undefined) {
    response.end(text, encoding)
    return
  }
  socket.write(header + text, encoding)
  endWritten(response)
}

/** A body from pieces of memory that stay as they are until they are sent. */
export interface ListBody {
  readonly head: string
  readonly slices: readonly Buffer[]
  readonly tail: string
  /** Of the slices alone. */
  readonly slicesBytes: number
}

/** Sends the header that `writeHead` has made and the list behind it. Head and tail are Latin-1. */
export function endWithList(response: ServerResponse, body: ListBody): void {
  const header = headerOf(response)
  const socket = socketOf(response)
  if (header === undefined || socket === undefined) {
    endGathered(response, body)
    return
  }
  const head = header + body.head
  if (head.length + body.slicesBytes + body.tail.length <= copiedBytesMax) {
    socket.write(copied(head, body))
    if (socket.writableLength > 0) scratch = Buffer.alloc(0)
  } else {
    // Corked: one system call, whatever the number of slices.
    socket.cork()
    socket.write(head, 'latin1')
    for (const slice of body.slices) socket.write(slice)
    socket.write(body.tail, 'latin1')
  }
  endWritten(response)
}

function endGathered(response: ServerResponse, { head, slices, tail }: ListBody): void {
  response.cork()
  response.write(head, 'latin1')
  for (const slice of slices) response.write(slice)
  response.end(tail, 'latin1')
}

function copied(head: string, { slices, tail }: ListBody): Buffer {
  if (scratch.length === 0) scratch = Buffer.allocUnsafeSlow(copiedBytesMax)
  let end = scratch.write(head, 'latin1')
  for (const slice of slices) {
    scratch.set(slice, end)
    end += slice.length
  }
  end += scratch.write(tail, end, 'latin1')
  return scratch.subarray(0, end)
}

/** The header is made, nothing of it is sent, and a body is wanted. */
function headerOf(response: OpenResponse): string | undefined {
  const { _header: header, _headerSent: isSent } = response
  return typeof header === 'string' && isSent === false && response.req.method !== 'HEAD'
    ? header
    : undefined
}

/** The client's connection, where it is this response's turn on it. */
function socketOf(response: ServerResponse): Socket | undefined {
  const { socket } = response
  // A response that is no connection's (a test's) has another one than its request.
  return socket !== null && socket === response.req.socket && socket.writable ? socket : undefined
}

/** Uncorks the socket too. `finish` comes when all of it has been sent. */
function endWritten(response: OpenResponse): void {
  // oxlint-disable-next-line no-underscore-dangle -- node:http has no other name for it
  response._headerSent = true
  response.end()
}
