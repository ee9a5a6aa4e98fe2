/** What only an endpoint and this server know of a request. An endpoint that refuses a request often says what it got. */
import { secretLengthMin } from '../../kit/text/secret-finder.ts'
import { isPublicHeader } from './request-headers.ts'

/** Where the secrets of a request are: its path, which may contain a token, and the values of its headers, in alternation with names. */
export interface RequestSecrets {
  readonly path: string
  readonly headers: readonly string[]
}

/** Shorter parts are ordinary words, and blanking them out would hide what the endpoint says. */
const pathPartLengthMin = 8

/** Returns the secrets, each once and in one spelling (kit/text/secret-finder.ts knows the others). */
export function secretsOf({ path, headers }: RequestSecrets): ReadonlySet<string> {
  const values = headers.flatMap((value, nth) => {
    const name = headers[nth - 1] ?? ''
    if (nth % 2 === 0 || isPublicHeader(name, value)) return []
    return name.toLowerCase() === 'authorization' ? credentialsIn(value) : [value]
  })
  const spellings = [path, decoded(path)]
  const parts = spellings.flatMap((all) => [all, ...all.split(/[/?&=]/), ...all.split(/[/?&=:]/)])
  return new Set([
    ...values.filter(({ length }) => length >= secretLengthMin),
    ...parts.filter(({ length }) => length >= pathPartLengthMin),
  ])
}

/** Of `Basic <base64 of user:password>`, all forms that an endpoint may show. */
function credentialsIn(authorization: string): readonly string[] {
  const encoded = authorization.slice(authorization.indexOf(' ') + 1)
  const plain = Buffer.from(encoded, 'base64').toString()
  return [encoded, plain, plain.slice(plain.indexOf(':') + 1)]
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
