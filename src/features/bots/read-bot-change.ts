/**
 * Reads what a PATCH of a bot changes, and shows the settings of a bot. Not by the schemas of Fastify, which would take a text
 * for a number, and null for 0.
 */
import type { BotChange, ShownSettings } from '../../bots/bot.ts'
import { ttlSMax } from '../../kit/limits.ts'
import { type botOperations, nameRules } from './bot-operations.ts'
import {
  connectionsCapMax,
  headerNameLengthMax,
  headersMax,
  headerValueLengthMax,
  retryDelaySMax,
  retryDelaysMax,
} from '../../api/limits.ts'
import type { BodyOf, ResultOf } from '../../api/operation.ts'
import { isProtocolHeader } from '../../http/protocol-headers.ts'
import { readIsValidated, refusal } from '../../api/update-options.ts'

type Fields = { readonly [Name in keyof BodyOf<typeof botOperations.changeBot>]: unknown }

/** The fields of a bot that show its settings. */
export type SettingsJson = Omit<ResultOf<typeof botOperations.changeBot>, 'bot_id'>

/**
 * Reads the body of a PATCH.
 *
 * @param ownHeaders - the names of headers that deliveries have already, in lower case
 * @throws BAD_REQUEST that names the first field that is refused
 */
export function readBotChange(body: Fields, ownHeaders: ReadonlySet<string>): BotChange {
  if (Object.keys(body).length === 0) throw refusal('body', 'at least one field')
  const { validate, first_name: firstName, username, polls, headers } = body
  const { default_ttl: ttl, connections_cap: cap, retry_delays: delays } = body
  return {
    isValidated: validate === undefined ? undefined : readIsValidated(validate) || null,
    firstName: readName('first_name', firstName),
    username: readName('username', username),
    polls: readPolls(polls),
    ttlS: readNumber('default_ttl', ttl, ttlSMax),
    connectionsMax: readNumber('connections_cap', cap, connectionsCapMax),
    retryDelaysS: readDelays(delays),
    headers: readHeaders(headers, ownHeaders),
  }
}

/** A setting that is not set has no field. */
export function settingsJson(settings: ShownSettings): SettingsJson {
  return {
    validate: settings.isValidated ? 'telegram' : null,
    polls: settings.polls,
    default_ttl: settings.ttlS,
    connections_cap: settings.connectionsMax,
    retry_delays: settings.retryDelaysS,
    headers: settings.headerNames,
  }
}

function readName(field: keyof typeof nameRules, value: unknown): string | undefined {
  if (value === undefined) return undefined
  const { pattern, description } = nameRules[field]
  // As a registration reads it: a character outside of the basic plane is one character, and no surrogate.
  if (typeof value === 'string' && new RegExp(pattern, 'u').test(value)) return value
  throw refusal(field, description, value)
}

function readPolls(value: unknown): BotChange['polls'] {
  if (value === undefined || value === null || value === 'take_over') return value
  throw refusal('polls', '"take_over" or null', value)
}

function readNumber(field: string, value: unknown, max: number): number | null | undefined {
  if (value === undefined || value === null || isWhole(value, 1, max)) return value
  throw refusal(field, `a whole number from 1 to ${max}, or null`, value)
}

function isWhole(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
}

/** Without a delay, an endpoint that always fails would be asked without end, so only the first attempt may be repeated at once. */
function readDelays(value: unknown): readonly number[] | null | undefined {
  if (value === undefined || value === null) return value
  const isList = Array.isArray(value) && value.length >= 1 && value.length <= retryDelaysMax
  const delays: readonly unknown[] = isList ? value : []
  const isFirst = (nth: number): boolean => nth === 0 && delays.length > 1
  const checked = delays.flatMap((each, nth) =>
    isWhole(each, isFirst(nth) ? 0 : 1, retryDelaySMax) ? [each] : [],
  )
  if (isList && checked.length === value.length) return checked
  throw refusal(
    'retry_delays',
    `a list of 1 to ${retryDelaysMax} whole numbers of seconds from 1 to ${retryDelaySMax}, of which the first may be 0 if others follow, or null`,
    value,
  )
}

/** Not after `toLowerCase`, which makes an ASCII letter of the Kelvin sign: a delivery with such a name cannot be sent. */
const headerName = new RegExp(`^[!#$%&'*+.^_\`|~0-9A-Za-z-]{1,${headerNameLengthMax}}$`)
/** Neither control characters, which could begin another header, nor blanks at an end, which get lost. */
const headerValue = new RegExp(`^(?=.{1,${headerValueLengthMax}}$)[!-~](?:[ -~]*[!-~])?$`)

/** No error shows a value. */
function readHeaders(value: unknown, ownHeaders: ReadonlySet<string>): BotChange['headers'] {
  if (value === undefined || value === null) return value
  const entries: readonly (readonly [string, unknown])[] =
    typeof value === 'object' && !Array.isArray(value) ? Object.entries(value) : []
  if (entries.length === 0 || entries.length > headersMax) {
    throw refusal('headers', `an object with 1 to ${headersMax} headers, or null`)
  }
  const names = entries.map(([name]) => name.toLowerCase())
  const headers = entries.map(([name, text], nth): [string, string] => {
    assertHeaderName(name, ownHeaders)
    if (names.indexOf(name.toLowerCase()) !== nth)
      throw refusal(`headers.${name}`, 'each name once')
    if (typeof text === 'string' && headerValue.test(text)) return [name, text]
    const expected = `1 to ${headerValueLengthMax} printable ASCII characters without blanks at the ends`
    throw refusal(`headers.${name}`, expected)
  })
  return Object.fromEntries(headers)
}

/** Throws BAD_REQUEST, which shows no name that may be something else. */
function assertHeaderName(name: string, ownHeaders: ReadonlySet<string>): void {
  if (!headerName.test(name)) {
    throw refusal('headers', `names of HTTP headers with up to ${headerNameLengthMax} characters`)
  }
  if (ownHeaders.has(name.toLowerCase()) || isProtocolHeader(name)) {
    throw refusal(`headers.${name}`, 'a name that neither HTTP nor the server needs for itself')
  }
}
