/**
 * Parses the target of a request: `/bot<TOKEN>/METHOD`, `/bot<TOKEN>/test/METHOD` or `/file/bot<TOKEN>/PATH`, and the
 * bot id for routing.
 *
 * `parseTarget` runs for every request, `botIdOfTarget` also for every connection in the primary. The usual path has no
 * percent sign and is parsed without decoding or regular expressions. The path is split before it is decoded, so an
 * encoded slash cannot move the boundary between token and method.
 */
import { botIdMax } from '../limits.ts'

/** A call of a method. */
export interface MethodTarget {
  readonly kind: 'method'
  /** Percent-decoded but not checked. A secret: it is never logged. */
  readonly token: string
  readonly isTest: boolean
  /** The name in lower case, percent-decoded but not checked. */
  readonly method: string
  /** The part after the question mark, not decoded; empty if there is none. */
  readonly query: string
}

/** A file that a bot downloads. Only an upstream server has files. */
export interface FileTarget {
  readonly kind: 'file'
  /** As in a MethodTarget. */
  readonly token: string
  /** The path as it was sent, neither decoded nor checked, without the query. */
  readonly path: string
}

/** What a request asks for. */
export type Target = MethodTarget | FileTarget | { readonly kind: 'unknown' }

const unknownTarget: Target = { kind: 'unknown' }

/**
 * Parses the target of a request.
 *
 * @param url - The request target, as a path or as an absolute URL.
 * @returns The method or the file that it names, or `unknown`.
 */
export function parseTarget(url: string): Target {
  const start = pathStart(url)
  if (!url.startsWith('/bot', start)) return parseRarer(url, start)
  const questionMark = url.indexOf('?', start)
  const end = questionMark === -1 ? url.length : questionMark
  const tokenEnd = url.indexOf('/', start + 4)
  if (tokenEnd === -1 || tokenEnd >= end) return unknownTarget

  const isTest = url.startsWith('test/', tokenEnd + 1) && tokenEnd + 6 < end
  const methodStart = tokenEnd + (isTest ? 6 : 1)
  const methodEnd = url.charCodeAt(end - 1) === slash ? end - 1 : end
  if (methodStart >= methodEnd) return unknownTarget
  const token = decoded(url.slice(start + 4, tokenEnd))
  const method = decoded(url.slice(methodStart, methodEnd))
  if (token === undefined || method === undefined) return unknownTarget
  return {
    kind: 'method',
    token,
    isTest,
    method: method.toLowerCase(),
    query: questionMark === -1 ? '' : url.slice(questionMark + 1),
  }
}

/**
 * Whether the path of a file stays below the path of its bot, however it is encoded.
 *
 * @param path - The path of a FileTarget.
 */
export function isFilePath(path: string): boolean {
  // A URL parser ends the path at `#`, so `..#` would be `..`.
  if (path.includes('#')) return false
  return path.split('/').every((segment) => {
    const plain = decoded(segment)
    // A percent sign that is left might be decoded once more by the next server.
    return plain !== undefined && !/^\.{0,2}$|[/\\%\p{Cc}]/u.test(plain)
  })
}

/**
 * Returns the bot that a request concerns, so that the request can be routed to the bot's owner.
 *
 * The id only finds the way. The worker that serves the request checks the token, and forwards the request if the id
 * was wrong.
 *
 * @param url - The request target: `/bot<id>:...`, `/file/bot<id>:...` or `/v1/bots/<id>...`.
 * @returns The bot id, or undefined if the target names none.
 */
export function botIdOfTarget(url: string): number | undefined {
  const path = pathStart(url)
  const botId = botIdOfPath(url, path)
  // An encoded digit or prefix is rare.
  return botId === undefined && url.includes('%', path)
    ? botIdOfPath(decodedSegments(url, path), 0)
    : botId
}

function botIdOfPath(url: string, path: number): number | undefined {
  const start = url.startsWith(filePrefix, path) ? path + fileSegment.length : path
  if (url.startsWith('/bot', start)) {
    const end = digitsEnd(url, start + 4)
    if (isColonAt(url, end)) return botIdIn(url, start + 4, end)
  } else if (url.startsWith('/v1/bots/', start)) {
    const end = digitsEnd(url, start + 9)
    if (end === url.length || isBorder(url.charCodeAt(end))) return botIdIn(url, start + 9, end)
  }
  return undefined
}

const fileSegment = '/file'
const filePrefix = `${fileSegment}/bot`
const slash = 0x2f
const questionMarkCode = 0x3f

/** Returns where the path begins: at 0, or after `http://host`, which proxies send. */
function pathStart(url: string): number {
  if (url.charCodeAt(0) === slash) return 0
  const authority = url.indexOf('://')
  if (authority === -1) return url.length
  const path = url.indexOf('/', authority + 3)
  return path === -1 ? url.length : path
}

function parseRarer(url: string, start: number): Target {
  return url.startsWith(filePrefix, start) ? parseFile(url, start) : parseEncodedPrefix(url, start)
}

function parseFile(url: string, start: number): Target {
  const questionMark = url.indexOf('?', start)
  const end = questionMark === -1 ? url.length : questionMark
  const tokenStart = start + filePrefix.length
  const tokenEnd = url.indexOf('/', tokenStart)
  if (tokenEnd === -1 || tokenEnd >= end) return unknownTarget
  const token = decoded(url.slice(tokenStart, tokenEnd))
  if (token === undefined) return unknownTarget
  return { kind: 'file', token, path: url.slice(tokenEnd + 1, end) }
}

/** Parses `/%62ot...`, which differs from the usual path only in its encoding. */
function parseEncodedPrefix(url: string, start: number): Target {
  if (url.charCodeAt(start + 1) !== 0x25 && url.indexOf('%', start) > start + 4)
    return unknownTarget
  const border = url.indexOf('/', start + 1)
  if (border === -1) return unknownTarget
  const segment = url.slice(start + 1, border)
  const plain = segment.includes('%') ? decoded(segment) : undefined
  if (plain === undefined || !plain.startsWith('bot')) return unknownTarget
  return parseTarget(`/bot${encodeURIComponent(plain.slice(3))}${url.slice(border)}`)
}

function decoded(segment: string): string | undefined {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/** Returns the path without its query, with every segment decoded that can be. A single segment names the bot. */
function decodedSegments(url: string, start: number): string {
  const questionMark = url.indexOf('?', start)
  const path = url.slice(start, questionMark === -1 ? url.length : questionMark)
  const segments = path.split('/')
  return segments.map((segment) => decoded(segment) ?? segment).join('/')
}

function digitsEnd(url: string, from: number): number {
  let end = from
  for (let code = url.charCodeAt(end); code >= 0x30 && code <= 0x39; code = url.charCodeAt(end))
    end++
  return end
}

function isColonAt(url: string, at: number): boolean {
  return url.charCodeAt(at) === 0x3a || url.startsWith('%3A', at) || url.startsWith('%3a', at)
}

function isBorder(code: number): boolean {
  return code === slash || code === questionMarkCode
}

function botIdIn(url: string, from: number, end: number): number | undefined {
  // No id has more than 16 digits (2^52) or begins with a zero.
  if (end === from || end - from > 16 || url.charCodeAt(from) === 0x30) return undefined
  let id = 0
  for (let at = from; at < end; at++) id = id * 10 + (url.charCodeAt(at) - 0x30)
  return id <= botIdMax ? id : undefined
}

/**
 * Whether a text may end the path of a call to another server, because it cannot lead anywhere else.
 *
 * @param text - The name of a method.
 * @returns True for 1 to 64 letters, digits and underscores.
 */
export function isMethodName(text: string): boolean {
  return /^[A-Za-z0-9_]{1,64}$/.test(text)
}
