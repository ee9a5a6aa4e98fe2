/**
 * The kinds of values that an option can have: how a value is parsed from text and how an error describes it.
 *
 * Every value arrives as text (a flag, an environment variable, a key of the file flattened to text, or the default), so
 * that all four sources follow the same rules. A kind returns `refused` and never throws: the caller knows where the
 * value came from and writes the error.
 */
import { databasesMax } from '../kit/limits.ts'
import { type AddedType, addedTypeForm, addedTypesMax, parseAddedType } from '../kit/added-type.ts'
import { contractTypes } from '../kit/update-types.ts'
import { isIP } from 'node:net'
import type { TokenFilter } from '../api/token.ts'
import { type Proxy, serverOrigin, type UpstreamUrl } from '../http/server-origin.ts'
import { parsePgUrl, type PgUrl } from '../api/pg-url.ts'
import { requestPath } from '../http/plain-target.ts'
import { isProtocolHeader } from '../http/protocol-headers.ts'

export const refused = Symbol('refused')

export const portMax = 65_535

export interface Kind<T> {
  /** Describes the values in errors, --help and docs/reference/options.md: "an integer from 0 to 65535". */
  readonly expected: string
  /** Stands for the value in --help; absent for a switch, which takes none. */
  readonly placeholder?: string
  /** The option is a list: its flag may be repeated, and its text is split at this. */
  readonly separator?: ',' | ' '
  /** The value is never shown, not even if it is invalid. */
  readonly isSecret?: boolean
  /** All values, if there are only a few; shells complete them. */
  readonly words?: readonly string[]
  parse(text: string): T | typeof refused
  /** Returns the shortest text of the same value. */
  shortest?(text: string): string
  /** Says what a refused text was taken for, as the end of its error, if that helps. */
  whyRefused?(text: string): string | undefined
}

/** An integer with up to 15 digits. */
export function integer(min: number, max: number): Kind<number> {
  return {
    expected: `an integer from ${min} to ${max}`,
    placeholder: 'N',
    parse(text) {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : -1
      return value >= min && value <= max ? value : refused
    },
  }
}

/** A whole number with up to 16 digits, such as the id of a bot. */
export function wholeNumber(min: number, max: number): Kind<number> {
  return {
    expected: `a whole number from ${min} to ${max}`,
    placeholder: 'N',
    parse(text) {
      const value = /^\d{1,16}$/.test(text) ? Number(text) : -1
      return value >= min && value <= max ? value : refused
    },
  }
}

/** Any text except none. */
export const anyText: Kind<string> = {
  expected: 'text',
  placeholder: 'TEXT',
  parse: (text) => (text === '' ? refused : text),
}

/** A number, fractions allowed. */
export function decimal(min: number, max: number): Kind<number> {
  return {
    expected: `a number from ${min} to ${max}`,
    placeholder: 'N',
    parse(text) {
      const value = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : -1
      return value >= min && value <= max ? value : refused
    },
  }
}

export function powerOfTwo(max: number): Kind<number> {
  return {
    expected: `a power of two from 1 to ${max}`,
    placeholder: 'N',
    parse(text) {
      if (!/^\d{1,9}$/.test(text)) return refused
      const value = Number(text)
      return value >= 1 && value <= max && (value & (value - 1)) === 0 ? value : refused
    },
  }
}

/** The value of the kind, or undefined for the word `off`. */
export function orOff<T>(kind: Kind<T>): Kind<T | undefined> {
  return {
    ...kind,
    expected: `${kind.expected}, or off`,
    parse: (text) => (text.toLowerCase() === 'off' ? undefined : kind.parse(text)),
  }
}

export function oneOf<const T extends string>(words: readonly T[]): Kind<T> {
  return {
    expected: `one of ${words.join(', ')}`,
    placeholder: 'WORD',
    words,
    parse: (text) => words.find((word) => word === text) ?? refused,
  }
}

/** Values separated by commas, at least `countMin`; duplicates count once. */
export function listOf<T>(kind: Kind<T>, countMin = 0): Kind<readonly T[]> {
  return {
    ...kind,
    separator: ',',
    parse(text) {
      const values = new Set<T>()
      for (const part of text.split(',')) {
        if (part.trim() === '') continue
        const value = kind.parse(part.trim())
        if (value === refused) return refused
        values.add(value)
      }
      return values.size < countMin ? refused : [...values]
    },
  }
}

const trueWords = new Set(['true', 'yes', 'on', '1'])
const falseWords = new Set(['false', 'no', 'off', '0'])

export const onOff: Kind<boolean> = {
  expected: 'true or false',
  parse(text) {
    const word = text.toLowerCase()
    if (trueWords.has(word)) return true
    return falseWords.has(word) ? false : refused
  },
}

export const path: Kind<string> = {
  expected: 'a path',
  placeholder: 'PATH',
  parse: (text) => (text === '' || text.includes('\0') ? refused : text),
}

/** Returns whether the address of a listener is the path of a Unix socket; otherwise it is an IP address. */
export function isSocketPath(address: string): boolean {
  return address.startsWith('/') || address.startsWith('./')
}

/** The path of a Unix socket may have this many bytes: the kernel's field (sun_path) has 108, with the closing zero. */
const listenPathBytesMax = 107

export const listenAddress: Kind<string> = {
  expected: `an IP address, or a Unix socket path that begins with / or ./ and has at most ${listenPathBytesMax} bytes`,
  placeholder: 'ADDRESS',
  parse(text) {
    if (!isSocketPath(text)) return isIP(text) === 0 ? refused : text
    return text.includes('\0') || Buffer.byteLength(text) > listenPathBytesMax ? refused : text
  },
}

/** A port of a machine. The host has no brackets. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

export const hostPort: Kind<HostPort> = {
  expected: 'HOST:PORT, such as 10.0.0.5:8450, [fd00::5]:8450 or a.example:8450',
  placeholder: 'HOST:PORT',
  parse(text) {
    const [, bracketed, plain = '', digits] =
      /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? []
    const port = Number(digits)
    if (!(port >= 1 && port <= portMax)) return refused
    if (bracketed !== undefined) return isIP(bracketed) === 6 ? { host: bracketed, port } : refused
    const name = hostName.parse(plain)
    // A name of digits and dots is a mistyped address.
    const isWrong = name === refused || (/^[\d.]+$/.test(name) && isIP(name) === 0)
    return isWrong ? refused : { host: name, port }
  },
}

export const hostName: Kind<string> = {
  expected: 'a host name without a port',
  placeholder: 'NAME',
  parse: (text) =>
    /^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?\.?$/i.test(text) ? text.toLowerCase() : refused,
}

export const cidr: Kind<string> = {
  expected: 'a range of IP addresses, such as 10.0.0.0/8 or fd00::/8',
  placeholder: 'CIDR',
  parse(text) {
    const [address = '', bits = '', ...rest] = text.split('/')
    const family = isIP(address)
    if (family === 0 || address.includes('%') || rest.length > 0) return refused
    return /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128) ? text : refused
  },
}

/** A secret in a header that has a meaning already would break every delivery. */
export const headerName: Kind<string> = {
  expected: 'the name of an HTTP header that deliveries do not use for another purpose',
  placeholder: 'NAME',
  parse(text) {
    const isToken = /^[!#$%&'*+.^_`|~0-9a-z-]{1,256}$/i.test(text)
    return isToken && !isProtocolHeader(text) ? text : refused
  },
}

/** In any order: their numbers are stored by name. */
export const addedTypeList: Kind<readonly AddedType[]> = {
  expected: `${addedTypeForm}, each name once and at most ${addedTypesMax} of them`,
  placeholder: 'TYPE',
  separator: ',',
  parse(text) {
    const parts = new Set(text.split(',').map((part) => part.trim()))
    parts.delete('')
    const names = new Set<string>(contractTypes)
    const types: AddedType[] = []
    for (const part of parts) {
      const type = parseAddedType(part)
      if (type === undefined || names.has(type.name)) return refused
      names.add(type.name)
      types.push(type)
    }
    return types.length > addedTypesMax ? refused : types
  },
}

export const botFilter: Kind<TokenFilter> = {
  expected: 'R/M with 0 <= R < M',
  placeholder: 'R/M',
  parse(text) {
    const match = /^(\d{1,9})\/(\d{1,9})$/.exec(text)
    if (match === null) return refused
    const remainder = Number(match[1])
    const modulus = Number(match[2])
    return remainder < modulus ? { remainder, modulus } : refused
  },
}

export const proxyAddress: Kind<Proxy> = {
  expected: 'http://[user:password@]host:port',
  placeholder: 'URL',
  isSecret: true,
  parse(given) {
    const text = given.trim()
    // URL drops port 80 because it is the default of http, but the option requires a port, so the text itself is checked.
    if (!/^http:\/\/([^/@]*@)?[^/@]+:\d{1,5}\/?$/i.test(text) || !URL.canParse(text)) return refused
    const url = new URL(text)
    const port = url.port === '' ? 80 : Number(url.port)
    const credentials = proxyCredentials(url)
    if (port === 0 || url.hostname === '' || credentials === refused) return refused
    return {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port,
      authorization:
        credentials === '' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`,
    }
  },
}

/** Each URL may name several hosts, separated by commas. The order of the databases matters. */
export const databaseUrls: Kind<readonly PgUrl[]> = {
  expected: `postgres://[user[:password]@]host[:port][,host[:port]...]/name, at most ${databasesMax} of them, or none`,
  placeholder: 'URL',
  separator: ' ',
  isSecret: true,
  parse(text) {
    if (text === 'none') return []
    const urls = text.split(/\s+/).filter(Boolean).map(parsePgUrl)
    const known = urls.filter((url) => url !== undefined)
    const isUsable = known.length === urls.length && known.length <= databasesMax
    return isUsable && known.length > 0 ? known : refused
  },
}

export const nodeName: Kind<string> = {
  expected: '1 to 63 letters, digits, dots, dashes and underscores',
  placeholder: 'NAME',
  parse: (text) => (/^[\w.-]{1,63}$/.test(text) ? text : refused),
}

/** Credentials are refused, because nothing would send them. */
export const upstreamUrl: Kind<UpstreamUrl> = {
  expected: 'http[s]://host[:port][/path]',
  placeholder: 'URL',
  isSecret: true,
  parse(given) {
    const [, server = '', rest = ''] =
      /^(https?:\/\/[^/?#@\\\s]+)(\/[^?#@\\\s]*)?$/i.exec(given.trim()) ?? []
    if (!URL.canParse(server)) return refused
    const { origin, hostname, port } = new URL(server)
    if (hostname === '' || port === '0') return refused
    return { origin, prefix: requestPath(rest).replace(/(?<!\/)\/+$/, '') }
  },
}

/** Without a path, because the page and its calls are at fixed ones. */
export const portalUrl: Kind<string> = {
  expected: 'http[s]://host[:port]',
  placeholder: 'URL',
  parse: (text) => serverOrigin(text) ?? refused,
}

/** An address of the Telegram Bot API that was pasted here may have a token in its path. */
export const secretServerUrl: Kind<string> = { ...portalUrl, isSecret: true }

/** Any host and port, because the operator names it. */
export const eventsUrl: Kind<string> = {
  expected: 'https://[user:password@]host[:port][/path]',
  placeholder: 'URL',
  isSecret: true,
  parse(given) {
    const text = given.trim()
    const isPlain = /^https?:\/\/[^/\\\s?#][^\s#]{0,2000}$/i.test(text)
    if (!isPlain || !URL.canParse(text)) return refused
    const { hostname, port } = new URL(text)
    return hostname === '' || port === '0' ? refused : text
  },
}

function proxyCredentials(url: URL): string | typeof refused {
  if (url.username === '' && url.password === '') return ''
  try {
    return `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  } catch {
    return refused
  }
}
