/**
 * Releases the headers of a request that waits for its response. Those of a usual client take a kilobyte, and thousands of
 * polls wait at a time.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { hasBody } from './body.ts'

const noHeaders: IncomingHttpHeaders = {}
const noRawHeaders: string[] = []

/** Keeps only the headers that are read when the response is sent. Does nothing while the body is arriving. */
export function dropHeaders(request: IncomingMessage): void {
  if (hasBody(request) && !request.complete) return
  const { 'accept-encoding': encoding, 'x-real-ip': realIp } = request.headers
  request.headers =
    encoding === undefined && realIp === undefined
      ? noHeaders
      : { 'accept-encoding': encoding, 'x-real-ip': realIp }
  request.rawHeaders = noRawHeaders
}
