/**
 * Parses the target of a request: `/bot<TOKEN>/METHOD`, `/bot<TOKEN>/test/METHOD` or `/file/bot<TOKEN>/PATH`, and the
 * bot id for routing.
 *
 * All targets are in their plain spelling (http/plain-target.ts). `targetOf` is asked for every request, so the usual path is
 * parsed without decoding or regular expressions. The path is split before the rest of it is decoded, so an encoded slash
 * cannot move the boundary between token and method.
 */
import type * as http from 'node:http'
import { botIdMax } from '../kit/limits.ts'

/** A call of a method. */
export interface MethodTarget {
  readonly kind: 'method'
  /** Percent-decoded but not checked. A secret: it is never logged. */
  readonly token: string
  readonly isTest: boolean
  /** The name in lower case, percent-decoded but not checked. */
  readonly method: string
  /** The name as it was sent, likewise. */
  readonly methodName: string
  /** The part after the question mark, not decoded; empty if there is none. */
  readonly query: string
}

/** A file that a bot downloads. Only an upstream server has files. */
export interface FileTarget {
  readonly kind: 'file'
  /** As in a MethodTarget. */
  readonly token: string
  /** The path in its plain spelling, not decoded further and not checked, without the query. */
  readonly path: string
}

/** The methods that this server implements (own-methods.ts), in lower case. */
export const ownMethodNames = [
  'getupdates',
  'setwebhook',
  'deletewebhook',
  'getwebhookinfo',
  'getme',
  'logout',
  'close',
] as const
export type OwnMethodName = (typeof ownMethodNames)[number]
const ownMethods: ReadonlySet<string> = new Set(ownMethodNames)

/** What a request asks for. */
export type Target = MethodTarget | FileTarget | { readonly kind: 'unknown' }

const unknownTarget: Target = { kind: 'unknown' }

const parsedTarget: unique symbol = Symbol('parsed target')

declare module 'http' {
  interface IncomingMessage {
    [parsedTarget]?: Target
  }
}

/** Returns what a request asks for. Its target is parsed once, in its plain spelling. */
export function targetOf(request: Pick<http.IncomingMessage, 'url' | typeof parsedTarget>): Target {
  return (request[parsedTarget] ??= parseTarget(request.url ?? '/'))
}

/**
 * Parses the target of a request.
 *
 * @param url - The plain request target.
 * @returns The method or the file that it names, or `unknown`.
 */
export function parseTarget(url: string): Target {
  if (!url.startsWith('/bot')) return parseFile(url)
  const questionMark = url.indexOf('?')
  const end = questionMark === -1 ? url.length : questionMark
  const tokenEnd = url.indexOf('/', 4)
  if (tokenEnd === -1 || tokenEnd >= end) return unknownTarget

  const isTest = url.startsWith('test/', tokenEnd + 1) && tokenEnd + 6 < end
  const methodStart = tokenEnd + (isTest ? 6 : 1)
  const methodEnd = url.charCodeAt(end - 1) === slash ? end - 1 : end
  if (methodStart >= methodEnd) return unknownTarget
  const token = decoded(url.slice(4, tokenEnd))
  const method = decoded(url.slice(methodStart, methodEnd))
  if (token === undefined || method === undefined) return unknownTarget
  return {
    kind: 'method',
    token,
    isTest,
    method: method.toLowerCase(),
    methodName: method,
    query: questionMark === -1 ? '' : url.slice(questionMark + 1),
  }
}

/**
 * Says what is wrong with a path of no method, if it is what a wrong API address of a framework gives.
 *
 * @param url - The plain request target, of kind `unknown`.
 * @returns The end of the description, without any part of the path, which has the token; or undefined.
 */
export function addressHint(url: string): string | undefined {
  if (/^\/\/+(?:file\/)?bot/.test(url))
    return ': the address of the server ends with a slash too many'
  if (/^\/+(?:file\/)?\d+(?::|%3a)/i.test(url)) {
    return ': expected /bot<token>/METHOD, got no "bot" before the token'
  }
  return undefined
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
 * @param url - The plain request target: `/bot<id>:...`, `/file/bot<id>:...` or `/v1/bots/<id>...`.
 * @returns The bot id, or undefined if the target names none.
 */
export function botIdOfTarget(url: string): number | undefined {
  const start = url.startsWith(filePrefix) ? fileSegment.length : 0
  if (url.startsWith('/bot', start)) {
    const end = digitsEnd(url, start + 4)
    if (url.charCodeAt(end) === colon) return botIdIn(url, start + 4, end)
  } else if (url.startsWith(botsPath)) return botIdAt(url, botsPath.length)
  return undefined
}

/**
 * Returns the bot that a call of the owner's page concerns, likewise.
 *
 * @param url - The plain request target: `/portal/v1/bots/<id>...`.
 */
export function botIdOfPortalCall(url: string): number | undefined {
  return url.startsWith(portalBotsPath) ? botIdAt(url, portalBotsPath.length) : undefined
}

/** Whether a request is a bot's, and so neither a probe, nor for the owner's page, nor a call of the private API. */
export function isBotTarget(url: string): boolean {
  return url.startsWith('/bot') || url.startsWith(filePrefix)
}

/** Whether a request is for the owner's page or its calls. */
export function isPortalTarget(url: string): boolean {
  return url.startsWith(portalPagePath)
}

/** Below this path are the owner's page, and the calls that its links may make. */
export const portalPrefix = '/portal'
export const portalPagePath = `${portalPrefix}/`

const botsPath = '/v1/bots/'
const portalBotsPath = `${portalPrefix}${botsPath}`

function botIdAt(url: string, start: number): number | undefined {
  const end = digitsEnd(url, start)
  const isWhole = end === url.length || isBorder(url.charCodeAt(end))
  return isWhole ? botIdIn(url, start, end) : undefined
}

const fileSegment = '/file'
const filePrefix = `${fileSegment}/bot`
const slash = 0x2f
const questionMarkCode = 0x3f
const colon = 0x3a

function parseFile(url: string): Target {
  if (!url.startsWith(filePrefix)) return unknownTarget
  const questionMark = url.indexOf('?')
  const end = questionMark === -1 ? url.length : questionMark
  const tokenStart = filePrefix.length
  const tokenEnd = url.indexOf('/', tokenStart)
  if (tokenEnd === -1 || tokenEnd >= end) return unknownTarget
  const token = decoded(url.slice(tokenStart, tokenEnd))
  if (token === undefined) return unknownTarget
  return { kind: 'file', token, path: url.slice(tokenEnd + 1, end) }
}

function decoded(segment: string): string | undefined {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

function digitsEnd(url: string, from: number): number {
  let end = from
  for (let code = url.charCodeAt(end); code >= 0x30 && code <= 0x39; code = url.charCodeAt(end))
    end++
  return end
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

/** Whether a request is for a file or for a method that this server does not implement, so that its body is forwarded. */
export function isForUpstream(request: Parameters<typeof targetOf>[0]): boolean {
  const target = targetOf(request)
  if (target.kind !== 'method') return target.kind === 'file'
  return !ownMethods.has(target.method)
}

/** protocol.md §3: only GET and POST run a method, whether it is an own method or one of the upstream server. */
export function runsMethods({ method }: http.IncomingMessage): boolean {
  return method === 'GET' || method === 'POST'
}
