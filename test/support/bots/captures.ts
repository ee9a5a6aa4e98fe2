/**
 * Reads test/clients/captures/*.http: the bytes that bot clients send, and what they need as responses. Each file is
 * one client, in a format that people can read and edit:
 *
 *     # grammY 1.46.0                              the client and its version
 *     # Recorded on the wire.                      or: Written from its source.
 *
 *     ## poll                                      a session, with a separate bot and separate connections
 *
 *     ### c1 getUpdates                            a request on the session's connection c1
 *     # written from its source                      unlike the rest of the file
 *     # sent at once                               before the responses to the requests above (otherwise after them)
 *     # reads {"offset":"{update2}"}               the parameters in it; an empty one counts as none
 *     # reads a certificate                        it also contains a file
 *     # answers bot                                the response of getMe; other ones:
 *     # answers update 1                             the first one of the list, which was pending before
 *     # answers update 2, pushed while it waits
 *     # answers no update
 *     # answers true, Webhook was set                `result` and `description`
 *     # answers webhook                              what was set last, in the form of getWebhookInfo
 *     # answers 404 Not Found: method not found
 *     # waits until the client goes away             no response
 *     # sets {"url":"…","max_connections":5}       the webhook from now on; without it: the default allowed_updates
 *     POST /bot{token}/getUpdates HTTP/1.1
 *     Content-Length: 4
 *
 *     null\n
 *     # end of write                               the end of what was written in one piece; another piece may follow
 *
 *     ### receiver                                 an update is pushed, and this is the client's response to the delivery
 *     # delivered                                  or: refused: TEXT (last_error_message of getWebhookInfo)
 *     HTTP/1.1 200 OK
 *
 * Each line of a write ends with CR LF on the wire. A line that ends with `\n` has only LF, and one that ends with `\`
 * has no line end. {token}, its two parts {id} and {secret}, and {host} occur only in heads. {update2} and {update3}
 * are ids of the session's updates. Like the recorded ones they have nine digits, so that Content-Length and chunk
 * sizes stay correct.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const directory = fileURLToPath(new URL('../../../../test/clients/captures/', import.meta.url))
/** The content of every uploaded file except one, which contains the text PEM. */
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
  /** Undefined if the update was delivered. */
  readonly error?: string | undefined
  readonly writes: readonly string[]
}

/** The fields as in getWebhookInfo. */
export type WebhookState = Readonly<Record<string, unknown>>

/** The response that the client needs. */
export type Need =
  | { readonly kind: 'bot' | 'webhook' | 'nothing' }
  | { readonly kind: 'updates'; readonly first: number | undefined; readonly isPushed: boolean }
  | { readonly kind: 'true'; readonly description: string }
  | { readonly kind: 'refusal'; readonly status: number; readonly description: string }

/** The values of the placeholders of a session. */
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

/** Returns all requests of all sessions. */
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
  // Only empty lines may follow the last write of a step.
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
  /** Returns the rest of the remark with this beginning. */
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

/** Inserts the session's values into a text, without changing its length. */
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
