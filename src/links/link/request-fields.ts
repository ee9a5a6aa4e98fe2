/**
 * The head of a forwarded request as text, one byte per character: its fields, one per line. Nothing in a field can end
 * a line, because the HTTP parser that read it accepts no line feed in any of them.
 */
import type { RequestOrigin } from '../../http/connection-origin.ts'
import { BadFrameError } from './frame.ts'

export interface RequestFields {
  readonly method: string
  readonly url: string
  /** Flat, in the order and case in which they arrived. */
  readonly rawHeaders: readonly string[]
  /** Of the request as its owner receives it. */
  readonly origin: RequestOrigin
}

export function requestFieldsText({ method, url, rawHeaders, origin }: RequestFields): string {
  const { listener, clientAddress, hops, shard = '' } = origin
  let text = `${listener}\n${clientAddress}\n${hops}\n${shard}\n${method}\n${url}`
  for (const field of rawHeaders) text += `\n${field}`
  return text
}

/** Throws a BadFrameError if the text does not hold these fields. */
export function readRequestFields(text: string): RequestFields & { readonly rawHeaders: string[] } {
  const fields = text.split('\n')
  const [listener, clientAddress = '', hops, shard = '', method = '', url = ''] = fields
  if (listener !== 'bot' && listener !== 'private') throw new BadFrameError('a listener')
  fields.splice(0, 6)
  const origin: RequestOrigin = {
    listener,
    clientAddress,
    hops: Number(hops),
    shard: shard === '' ? undefined : Number(shard),
  }
  return { method, url, rawHeaders: fields, origin }
}
