/**
 * What a request line asks for: `/bot<TOKEN>/METHOD`, `/bot<TOKEN>/test/METHOD` or `/file/bot<TOKEN>/PATH`, and the bot
 * id for routing.
 *
 * Both functions run for every request, the second in the primary for every connection too: the usual path has no
 * percent sign and is read without decoding or regular expressions. The path is split before it is decoded, so that
 * an encoded slash cannot move the border between token and method.
 */
import { botIdMax } from '../limits.ts'

export interface MethodTarget {
  readonly kind: 'method'
  /** As it came, percent-decoded: not checked. A secret: never logged. */
  readonly token: string
  readonly isTest: boolean
  /** In lower case. */
  readonly method: string
  /** Behind the question mark, not decoded; empty where there is none. */
  readonly query: string
}

/** A file that a bot downloads. Only an upstream server has any. */
export interface FileTarget {
  readonly kind: 'file'
  /** As a method's. */
  readonly token: string
  /** As it came, not decoded and not checked, without the query. */
  readonly path: string
}

export type Target = MethodTarget | FileTarget | { readonly kind: 'unknown' }

const unknownTarget: Target = { kind: 'unknown' }

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

/** Whether the path of a file stays below its bot's, however it is spelt. */
export function isFilePath(path: string): boolean {
  // Whatever makes a URL of it ends the path there: `..#` is `..`.
  if (path.includes('#')) return false
  return path.split('/').every((segment) => {
    const plain = decoded(segment)
    // What is still encoded might be decoded once more behind us.
    return plain !== undefined && !/^\.{0,2}$|[/\\%\p{Cc}]/u.test(plain)
  })
}

/**
 * The bot that a request concerns, from `/bot<id>:...`, `/file/bot<id>:...` or `/v1/bots/<id>...`, for sending it to
 * its owner. It only finds the way: whoever answers the request checks the token, and forwards where this was wrong.
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

/** Where the path begins: at once, or behind `http://host` as proxies send it. */
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

/** `/%62ot...`: the same path, but for its encoding. */
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

/** The path without its query, every segment decoded where that can be done: the bot is named by one alone. */
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
  // No id has more than 16 digits (2^52); nor does one begin with a zero.
  if (end === from || end - from > 16 || url.charCodeAt(from) === 0x30) return undefined
  let id = 0
  for (let at = from; at < end; at++) id = id * 10 + (url.charCodeAt(at) - 0x30)
  return id <= botIdMax ? id : undefined
}

/** What may stand at the end of the path of a call: nothing that could lead anywhere else. */
export function isMethodName(text: string): boolean {
  return /^[A-Za-z0-9_]{1,64}$/.test(text)
}
