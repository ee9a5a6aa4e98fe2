/**
 * Reads from the first bytes of a connection which worker should get it. This is pure, and the only parser of the
 * primary.
 *
 *   botId      `/bot<digits>:` (perhaps after `/file`) or `/v1/bots/<digits>` was found: the line need not be complete
 *   shard      `/v1/updates?shard=<digits>` and nothing else: a stream that wants the worker of this shard
 *   none       the request line is complete and names neither: any worker may have it
 *   more       not decided yet
 *   too long   8 KiB and still undecided
 *   bad        this is not HTTP (a TLS hello, binary noise): no worker needs to see it
 *
 * A wrong guess costs one forwarded request and is never an error. If a bot id is out of range, any worker may answer 401 or 421.
 * A shard that does not exist, or is written in another way, is none.
 */
import { requestLineBytesMax } from '../limits.ts'
import { plainTarget } from '../../http/plain-target.ts'
import { botIdMax } from '../../kit/limits.ts'

/** What a request line names that one worker has. */
export type NamedOwner = { readonly botId: number } | { readonly shard: number }

export type RequestLine = NamedOwner | 'none' | 'more' | 'too long' | 'bad'

// HTTP allows empty lines before the request.
const method = /^[\r\n]*[A-Za-z-]+ +/
const bot = /^\/(?:(?:file\/)?bot(\d{1,16}):|v1\/bots\/(\d{1,16})(?=[/? ]))/
const hintedStream = /^\/v1\/updates\?shard=(\d{1,3}) /

const lineFeed = 0x0a
const carriageReturn = 0x0d

export function readRequestLine(bytes: Buffer): RequestLine {
  const start = skipEmptyLines(bytes)
  const feed = bytes.indexOf(lineFeed, start)
  const end = feed === -1 ? bytes.length : feed
  const line = bytes.toString('latin1', start, Math.min(end, start + requestLineBytesMax))
  if (holdsControl(line)) return 'bad'
  const [verb] = method.exec(line) ?? []
  const owner = verb === undefined ? undefined : ownerIn(plainTarget(line.slice(verb.length)))
  if (owner !== undefined) return owner
  if (end > requestLineBytesMax) return 'too long'
  if (feed !== -1) return 'none'
  return bytes.length >= requestLineBytesMax ? 'too long' : 'more'
}

function ownerIn(target: string): NamedOwner | 'none' | undefined {
  const match = bot.exec(target)
  if (match !== null) {
    const botId = Number(match[1] ?? match[2])
    return botId <= botIdMax ? { botId } : 'none'
  }
  const shard = hintedStream.exec(target)?.[1]
  return shard === undefined ? undefined : { shard: Number(shard) }
}

/** Whether the end of the request line has not arrived, and may be waited for. */
export function isLineOpen(bytes: Buffer): boolean {
  const isShort = bytes.length < requestLineBytesMax
  return isShort && bytes.indexOf(lineFeed, skipEmptyLines(bytes)) === -1
}

function skipEmptyLines(bytes: Buffer): number {
  let start = 0
  while (bytes[start] === lineFeed || bytes[start] === carriageReturn) start++
  return start
}

/** A carriage return is allowed before the line feed, or at the end if the line feed has not arrived yet. */
function holdsControl(line: string): boolean {
  const last = line.length - 1
  for (let at = 0; at <= last; at++) {
    const code = line.charCodeAt(at)
    if (code > 0x20 && code !== 0x7f) continue
    if (code !== 0x20 && !(code === carriageReturn && at === last)) return true
  }
  return false
}
