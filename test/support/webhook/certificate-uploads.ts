/**
 * The requests with which real clients upload a certificate (from test/clients/captures), with another token, url and
 * certificate. Chunk sizes and Content-Length are adapted; what was written in one piece stays in one piece.
 */
import assert from 'node:assert/strict'
import { capturedCertificate, fill, readCaptures, type RequestStep } from '../bots/captures.ts'

export interface CertificateUpload {
  /** The client and its session. */
  readonly client: string
  readonly step: RequestStep
}

export interface UploadWishes {
  readonly token: string
  readonly certificate: string
  /** Default: the captured url. */
  readonly url?: string
  readonly host?: string
}

/** A range of text with its replacement. */
interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

export const certificateUploads: readonly CertificateUpload[] = readCaptures().flatMap(
  ({ client, sessions }) =>
    sessions.flatMap(({ name, steps }) =>
      steps
        .filter((step) => step.kind === 'request')
        .filter(({ hasCertificate }) => hasCertificate)
        .map((step) => ({ client: `${client} (${name})`, step })),
    ),
)

/** Returns the request as a sequence of writes. */
export function uploadWrites(upload: CertificateUpload, wishes: UploadWishes): readonly string[] {
  const { token, host = '127.0.0.1', certificate } = wishes
  const { step } = upload
  const captured = step.reads['url'] ?? ''
  const url = wishes.url ?? captured
  const writes = step.writes.map((write) => fill(write, { token, host }))
  const file = writes.join('').includes(capturedCertificate) ? capturedCertificate : 'PEM'
  return replaceTexts(writes, [
    [captured, url],
    [encodeURIComponent(captured), encodeURIComponent(url)],
    [file, certificate],
  ])
}

function replaceTexts(
  writes: readonly string[],
  replacements: readonly (readonly [string, string])[],
): readonly string[] {
  const text = writes.join('')
  const edits: Edit[] = []
  for (const [from, to] of replacements) {
    for (let start = text.indexOf(from); start !== -1; start = text.indexOf(from, start + 1)) {
      edits.push({ start, end: start + from.length, text: to })
    }
  }
  const lengths = [...lengthEdits(text, edits)]
  return applyEdits(
    writes,
    [...edits, ...lengths].toSorted((a, b) => a.start - b.start),
  )
}

/** Yields the edits of chunk sizes or of Content-Length that the other edits require. */
function* lengthEdits(text: string, edits: readonly Edit[]): Generator<Edit> {
  const bodyStart = text.indexOf('\r\n\r\n') + 4
  const growthBetween = (start: number, end: number): number =>
    edits
      .filter((edit) => edit.start >= start && edit.end <= end)
      .reduce((sum, edit) => sum + Buffer.byteLength(edit.text) - (edit.end - edit.start), 0)
  const declared = /content-length: (\d+)/i.exec(text.slice(0, bodyStart))
  if (declared !== null) {
    const length = Number(declared[1]) + growthBetween(bodyStart, text.length)
    const end = declared.index + declared[0].length
    yield { start: end - (declared[1] ?? '').length, end, text: `${length}` }
    return
  }
  for (let at = bodyStart; at < text.length; ) {
    const sizeEnd = text.indexOf('\r\n', at)
    const size = Number.parseInt(text.slice(at, sizeEnd), 16)
    const growth = growthBetween(sizeEnd + 2, sizeEnd + 2 + size)
    if (growth !== 0) yield { start: at, end: sizeEnd, text: (size + growth).toString(16) }
    at = sizeEnd + 2 + size + 2
  }
}

/** Applies edits in order. None of them may span two writes. */
function applyEdits(writes: readonly string[], edits: readonly Edit[]): readonly string[] {
  let start = 0
  return writes.map((write) => {
    const end = start + write.length
    let result = ''
    let done = start
    for (const edit of edits.filter((each) => each.start >= start && each.start < end)) {
      assert(edit.end <= end)
      result += write.slice(done - start, edit.start - start) + edit.text
      done = edit.end
    }
    result += write.slice(done - start)
    start = end
    return result
  })
}
