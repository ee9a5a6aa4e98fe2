/**
 * Blanks out in a text of an endpoint what only the endpoint and this server know. An endpoint that refuses a request often
 * says what it got; errors of deliveries are shown to operators, in events and in logs, and the bodies of responses to operators.
 */

/** The secrets of a request: its path, which may contain a token, and the values of its headers, in alternation with names. */
export interface RequestSecrets {
  readonly path: string
  readonly headers: readonly string[]
}

/** Shorter parts are ordinary words, and blanking them out would hide what the endpoint says. */
const headerLengthMin = 4
const pathPartLengthMin = 8

/** Returns the printable characters of a text, with `***` in place of each secret. */
export function withoutSecrets(text: string, secrets: RequestSecrets): string {
  const printable = text.replaceAll(/[^\u0020-\u007e]/g, '')
  if (printable === '') return ''
  const longestFirst = [...secretsOf(secrets)].toSorted((a, b) => b.length - a.length)
  return longestFirst.reduce((shown, secret) => shown.replaceAll(secret, '***'), printable)
}

/** Returns the secrets, in each form in which an endpoint may show them. */
export function secretsOf({ path, headers }: RequestSecrets): ReadonlySet<string> {
  const values = headers.flatMap((value, nth) => {
    const name = headers[nth - 1]?.toLowerCase()
    if (nth % 2 === 0 || name === 'content-type') return []
    return name === 'authorization' ? credentialsIn(value) : [value]
  })
  const spellings = [path, decoded(path)]
  const parts = spellings.flatMap((all) => [all, ...all.split(/[/?&=]/), ...all.split(/[/?&=:]/)])
  return new Set([
    ...values.filter(({ length }) => length >= headerLengthMin),
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
