/** Reads requests that were never sent over a network, and makes multipart bodies with the boundary B. */
import { Readable } from 'node:stream'
import { PostboteError } from '../../../src/kit/errors.ts'
import { type Params, readParams } from '../../../src/bot-api/params.ts'
import { certificateRequestBytesMax, parameterBytesMax } from '../../../src/kit/limits.ts'

export interface Request {
  readonly query?: string
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  readonly mayHoldCertificate?: boolean
}

export const json = 'application/json'
export const form = 'application/x-www-form-urlencoded'
export const multipart = 'multipart/form-data; boundary=B'

export async function read(given: Request): Promise<Params> {
  const { query = '', type, headers = {}, body } = given
  const chunks = body === undefined ? [] : [Buffer.from(body)]
  const request = Object.assign(Readable.from(chunks, { objectMode: false }), {
    headers: {
      ...(body === undefined ? {} : { 'transfer-encoding': 'chunked' }),
      ...(type === undefined ? {} : { 'content-type': type }),
      ...headers,
    },
  })
  return readParams(request, {
    query,
    bytesMax: parameterBytesMax,
    ...(given.mayHoldCertificate ? { certificateBytesMax: certificateRequestBytesMax } : {}),
  })
}

/** Returns status and description of the refusal, or `accepted`. Any other failure is rethrown. */
export async function refusalOf(request: Request): Promise<string> {
  try {
    await read(request)
  } catch (error) {
    if (!(error instanceof PostboteError)) throw error
    return `${error.status} ${error.message}`
  }
  return 'accepted'
}

export function part(name: string, content: string | Buffer, more = ''): Buffer {
  const head = `--B\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.from(content), Buffer.from('\r\n')])
}

export function parts(...all: readonly Buffer[]): Buffer {
  return Buffer.concat([...all, Buffer.from('--B--\r\n')])
}
