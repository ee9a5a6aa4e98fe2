/**
 * Reads test/clients/captures/*.http: what the clients of bots put on the wire, byte for byte, and what they need to
 * hear. One file is one client. A file is for people to read and to edit:
 *
 *     # grammY 1.46.0                              the client and its version
 *     # Recorded on the wire.                      or: Written from its source.
 *
 *     ## poll                                      a session: a bot of its own, connections of its own
 *
 *     ### c1 getUpdates                            a request on the session's connection c1
 *     # written from its source                      unlike the rest of the file
 *     # sent at once                               before the answers to the requests above (else it is sent after them)
 *     # reads {"offset":"{update2}"}               the parameters in it, an empty one being none
 *     # reads a certificate                        there is a file in it, too
 *     # answers bot                                getMe's answer; further ones:
 *     # answers update 1                             that is the first in the list; it was there before
 *     # answers update 2, pushed while it waits
 *     # answers no update
 *     # answers true, Webhook was set                `result` and `description`
 *     # answers webhook                              what was set last, in getWebhookInfo's words
 *     # answers 404 Not Found: method not found
 *     # waits until the client goes away             no answer
 *     # sets {"url":"…","max_connections":5}       the webhook from now on; absent: allowed_updates of the default set
 *     POST /bot{token}/getUpdates HTTP/1.1
 *     Content-Length: 4
 *
 *     null\n
 *     # end of write                               what was written in one piece ends here; the next one may follow
 *
 *     ### receiver                                 an update is pushed, and this is the client's answer to the delivery
 *     # delivered                                  or: refused: TEXT (getWebhookInfo's last_error_message)
 *     HTTP/1.1 200 OK
 *
 * Each line of a write ends with CR LF on the wire; one that ends with `\n` only with LF, one that ends with `\` with
 * nothing. {token}, its two halves {id} and {secret}, and {host} occur in heads only. {update2} and {update3} are ids of
 * the session's updates; like the recorded ones they have nine digits, so that Content-Length and chunk sizes stay true.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const directory = fileURLToPath(new URL('../../../test/clients/captures/', import.meta.url))
/** The file that every upload holds; but one, which holds the text PEM. */
export const capturedCertificate = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n'

const titlePattern = /^# (.+)\n# (?:Recorded on the wire|Written from its source)\.\n/

export interface Capture {
  readonly client: string
  readonly sessions: readonly Session[]
}

export interface Session {
  readonly name: string
  readonly steps: readonly Step[]
}

export type Step = RequestStep | ReceiverStep

export interface RequestStep {
  readonly kind: 'request'
  readonly connection: string
  readonly method: string
  readonly isSentAtOnce: boolean
  readonly reads: Readonly<Record<string, string>>
  readonly hasCertificate: boolean
  readonly needs: Need
  readonly sets?: WebhookState | undefined
  readonly writes: readonly string[]
}

export interface ReceiverStep {
  readonly kind: 'receiver'
  /** Undefined: delivered. */
  readonly error?: string | undefined
  readonly writes: readonly string[]
}

/** As in getWebhookInfo. */
export type WebhookState = Readonly<Record<string, unknown>>

/** What the client needs to hear. */
export type Need =
  | { readonly kind: 'bot' | 'webhook' | 'nothing' }
  | { readonly kind: 'updates'; readonly first: number | undefined; readonly isPushed: boolean }
  | { readonly kind: 'true'; readonly description: string }
  | { readonly kind: 'refusal'; readonly status: number; readonly description: string }

/** What the placeholders of a session stand for. */
export interface Place {
  readonly token: string
  readonly host: string
  readonly update2?: number
  readonly update3?: number
}

export function readCaptures(): readonly Capture[] {
  const names = readdirSync(directory).toSorted()
  return names.map((name) => readCapture(name, readFileSync(directory + name, 'utf8')))
}

/** All requests of all sessions. */
export function requestsOf({ sessions }: Capture): readonly RequestStep[] {
  return sessions.flatMap(({ steps }) => steps).filter((step) => step.kind === 'request')
}

export function readCapture(name: string, text: string): Capture {
  const [head = '', ...sessions] = text.split(/^## /m)
  const [, client] = titlePattern.exec(head) ?? []
  assert(client !== undefined, `${name} must begin with the client and where its bytes are from`)
  return { client, sessions: sessions.map((each) => readSession(name, each)) }
}

function readSession(file: string, text: string): Session {
  const [head = '', ...steps] = text.split(/^### /m)
  const name = head.trim()
  return { name, steps: steps.map((each) => readStep(`${file}, ${name}`, each)) }
}

function readStep(where: string, text: string): Step {
  const [title = '', ...lines] = text.split('\n')
  const about = `${where}, ${title}`
  const remarks: string[] = []
  const writes: string[] = []
  let write = ''
  for (const line of lines) {
    if (line === '# end of write') {
      writes.push(write)
      write = ''
    } else if (line.startsWith('# ')) {
      if (line !== '# written from its source') remarks.push(line.slice(2))
    } else {
      write += bytesOf(line)
    }
  }
  // Between the last write and the next step there are empty lines only.
  assert.equal(write.trim(), '', `${about}: a write without its end`)
  assert(writes.length > 0, `${about}: nothing is written`)
  if (title === 'receiver') return { kind: 'receiver', error: readOutcome(remarks, about), writes }
  return { ...readRequest(title, remarks, about), writes }
}

function bytesOf(line: string): string {
  if (line.endsWith('\\n')) return `${line.slice(0, -2)}\n`
  return line.endsWith('\\') ? line.slice(0, -1) : `${line}\r\n`
}

function readOutcome(remarks: readonly string[], about: string): string | undefined {
  const [, outcome, error] = /^(delivered|refused: (.*))$/.exec(remarks.join()) ?? []
  assert(outcome !== undefined, `${about}: delivered or refused?`)
  return error
}

function readRequest(
  title: string,
  remarks: readonly string[],
  about: string,
): Omit<RequestStep, 'writes'> {
  const [connection = '', method = ''] = title.split(' ')
  const left = new Set(remarks)
  /** The rest of the remark that begins so. */
  const take = (start: string): string | undefined => {
    const found = [...left].find((remark) => remark.startsWith(start))
    if (found !== undefined) left.delete(found)
    return found?.slice(start.length)
  }
  const hasCertificate = take('reads a certificate') !== undefined
  const isSentAtOnce = take('sent at once') !== undefined
  const reads: Readonly<Record<string, string>> = JSON.parse(take('reads ') ?? '')
  const sets = take('sets ')
  const needs = readNeed(take('waits until the client goes away') ?? take('answers ') ?? '')
  assert.deepEqual([[...left], needs === undefined], [[], false], about)
  assert(needs !== undefined)
  return {
    kind: 'request',
    connection,
    method,
    isSentAtOnce,
    reads,
    hasCertificate,
    needs,
    sets: sets === undefined ? undefined : JSON.parse(sets),
  }
}

function readNeed(text: string): Need | undefined {
  if (text === '') return { kind: 'nothing' }
  if (text === 'bot' || text === 'webhook') return { kind: text }
  if (text === 'no update') return { kind: 'updates', first: undefined, isPushed: false }
  const [, first, isPushed] = /^update (\d)(, pushed while it waits)?$/.exec(text) ?? []
  if (first !== undefined) {
    return { kind: 'updates', first: Number(first), isPushed: isPushed !== undefined }
  }
  const [, outcome, description = ''] = /^(true,|\d{3}) (.*)$/.exec(text) ?? []
  if (outcome === undefined) return undefined
  if (outcome === 'true,') return { kind: 'true', description }
  return { kind: 'refusal', status: Number(outcome), description }
}

/** The text with the session's own values; no length changes. */
export function fill(text: string, place: Place): string {
  const { token, host, update2, update3 } = place
  const [id = '', secret = ''] = token.split(':')
  const values: Readonly<Record<string, string | undefined>> = {
    token,
    id,
    secret,
    host,
    update2: update2?.toString(),
    update3: update3?.toString(),
  }
  return text.replace(/\{(token|id|secret|host|update[23])\}/g, (placeholder, name: string) => {
    const value = values[name]
    assert(value !== undefined, `there is no ${placeholder} in this session`)
    if (name.startsWith('update')) assert.match(value, /^\d{9}$/, `${placeholder} changes lengths`)
    return value
  })
}
